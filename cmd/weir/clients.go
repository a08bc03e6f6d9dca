package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// clientsCommand looks at and edits which client has which plan or limits.
type clientsCommand struct {
	Set    clientsSet    `cmd:"" help:"Give a client a plan, or limits of its own, in place of what it had."`
	Get    clientsGet    `cmd:"" help:"Show a client. The exit code is 1 if there is none of that name."`
	List   clientsList   `cmd:"" help:"List clients, in order of their names."`
	Check  clientsCheck  `cmd:"" help:"List the clients that make no sense, with the reason. The exit code is 1 if there are some."`
	Delete clientsDelete `cmd:"" help:"Delete clients: they have the default limits then."`
	Import clientsImport `cmd:"" help:"Set all clients of a file of JSON lines, as list --json writes them: all, or none if one makes no sense."`
}

// databaseFlag says where the clients are.
type databaseFlag struct {
	Database string `required:"" env:"WEIR_CLIENTS" placeholder:"URL" help:"Where the clients are: ${clients}. A password is better in the environment than in the list of processes."`
}

// BeforeApply refuses arguments that would not be read as they are: two names could be read as one.
func (c *clientsCommand) BeforeApply(k *kong.Context) error { return refuseBytes(k.Args) }

func refuseBytes(args []string) error {
	for _, a := range args {
		if !utf8.ValidString(a) || strings.IndexByte(a, 0) >= 0 {
			return fmt.Errorf("argument is %.200q; accepted: UTF-8 without NUL", a)
		}
	}
	return nil
}

// with opens the database, runs f on it and closes it. A file of SQLite that is not there is not made: a service whose file is gone for
// a while would take the new one for its clients.
func (d *databaseFlag) with(ctx context.Context, p *program, f func(*clients.Database) error) error {
	db, err := clients.OpenExisting(ctx, d.Database)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; weir db migrate makes it", err)
	}
	if err != nil {
		return err
	}
	warnExposed(p.stderr, db)
	return errors.Join(f(db), db.Close())
}

// A clientName is a client's name in its canonical form: a secret is hashed.
type clientName string

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *clientName) UnmarshalText(text []byte) error {
	name, err := policy.ClientName(string(text))
	*n = clientName(name)
	return err
}

// warnExposed warns about files with access for more than their user.
func warnExposed(w io.Writer, db *clients.Database) {
	if files := db.Exposed(); len(files) > 0 {
		_, _ = fmt.Fprintf(w, "warning: other users of this machine may read the names of clients, which may be secrets; chmod 600 %s\n", strings.Join(files, " "))
	}
}

type clientsSet struct {
	databaseFlag

	Client clientName `arg:"" help:"The client: its source in the policies and its value, such as client_ip=192.0.2.7 or hash:header:X-API-Key=SECRET, which is stored as a hash; or the value alone, where the policies have one source."`
	Plan   string     `placeholder:"NAME" help:"The plan."`
	Limit  []string   `sep:"none" placeholder:"TEXT" help:"A limit of its own, such as 1000/1m; \"api: 1000/1m\" for the policy api only. Give it several times for several."`
	Policy string     `placeholder:"NAME" help:"The policy that limits without a name are for. Default: every policy that has plans."`
	Note   string     `help:"A note for people."`
	From   date       `placeholder:"TIME" help:"From when: 2026-06-01 or 2026-06-01T12:00:00Z. Default: now and before."`
	Until  date       `placeholder:"TIME" help:"Until when, exclusive. Default: for ever."`
	Config string     `env:"WEIR_CONFIG" type:"existingfile" placeholder:"FILE" help:"The policies: a plan that none of them has is then an error, and so is a limit that they refuse."`
}

// Run writes the client.
func (c *clientsSet) Run(ctx context.Context, p *program) error {
	row, err := c.client()
	if err != nil {
		return err
	}
	check, err := clientCheck(ctx, c.Config)
	if err != nil {
		return err
	}
	if err := check(row); err != nil {
		return fmt.Errorf("client %q: %w", row.Name, err)
	}
	return c.with(ctx, p, func(d *clients.Database) error { return d.Set(ctx, row) })
}

func (c *clientsSet) client() (clients.Client, error) {
	row := clients.Client{Name: string(c.Client), Plan: c.Plan, Note: c.Note, From: c.From.Time, Until: c.Until.Time}
	for _, text := range c.Limit {
		parsed, err := clients.ParseLimits(text)
		if err != nil {
			return row, err
		}
		if row.Limits == nil {
			row.Limits = map[string][]weir.Limit{}
		}
		for name, limits := range parsed {
			if name == "" {
				name = c.Policy
			}
			row.Limits[name] = append(row.Limits[name], limits...)
		}
	}
	return row, row.Validate()
}

type clientsGet struct {
	databaseFlag

	Client clientName `arg:"" help:"The client, as for set."`
	JSON   bool       `name:"json" help:"Show it as JSON."`
}

// Run shows the client.
func (c *clientsGet) Run(ctx context.Context, p *program) error {
	return c.with(ctx, p, func(d *clients.Database) error {
		row, ok, err := d.Get(ctx, string(c.Client))
		if err == nil && !ok {
			return fmt.Errorf("client %q is not in %s; it has the default limits", c.Client, d)
		}
		return showClients(p.stdout, func(yield func(clients.Client, error) bool) { yield(row, err) }, c.JSON)
	})
}

type clientsList struct {
	databaseFlag

	Plan   string `placeholder:"NAME" help:"Those of this plan only."`
	Prefix string `placeholder:"TEXT" help:"Those whose names begin with this only."`
	After  string `placeholder:"CLIENT" help:"Those that come after this only, such as the last of a list before."`
	Most   int    `placeholder:"N" help:"At most so many. Default: all."`
	JSON   bool   `name:"json" help:"List them as JSON, a line for each."`
}

// Run lists the clients.
func (c *clientsList) Run(ctx context.Context, p *program) error {
	if c.Most < 0 {
		return fmt.Errorf("--most is %d; accepted: 1 or more, or 0 for all", c.Most)
	}
	return c.with(ctx, p, func(d *clients.Database) error {
		filter := clients.Filter{Plan: c.Plan, Prefix: c.Prefix, After: c.After, Most: c.Most}
		return showClients(p.stdout, d.List(ctx, filter), c.JSON)
	})
}

type clientsCheck struct {
	databaseFlag

	Config string `env:"WEIR_CONFIG" type:"existingfile" placeholder:"FILE" help:"The policies: a plan that none of them has is then wrong too, and so is a limit that they refuse."`
	JSON   bool   `name:"json" help:"List them as JSON, a line for each."`
}

// Run lists the bad rows.
func (c *clientsCheck) Run(ctx context.Context, p *program) error {
	check, err := clientCheck(ctx, c.Config)
	if err != nil {
		return err
	}
	return c.with(ctx, p, func(d *clients.Database) error {
		return showClients(p.stdout, badClients(d.List(ctx, clients.Filter{}), check), c.JSON)
	})
}

// badClients returns the invalid clients, without the expired.
func badClients(all iter.Seq2[clients.Client, error], check func(clients.Client) error) iter.Seq2[clients.Client, error] {
	return func(yield func(clients.Client, error) bool) {
		now := time.Now()
		for c, err := range all {
			if !c.Until.IsZero() && !now.Before(c.Until) {
				continue
			}
			if err == nil {
				if reason := check(c); reason != nil {
					err = &clients.RowError{Client: c, Limits: clients.FormatLimits(c.Limits), Err: reason}
				}
			}
			if err != nil && !yield(c, err) {
				return
			}
		}
	}
}

type clientsDelete struct {
	databaseFlag

	Clients []clientName `arg:"" name:"client" help:"The clients, as for set."`
}

// Run deletes the clients.
func (c *clientsDelete) Run(ctx context.Context, p *program) error {
	return c.with(ctx, p, func(d *clients.Database) error {
		names := make([]string, len(c.Clients))
		for i, name := range c.Clients {
			names[i] = string(name)
		}
		n, err := d.Delete(ctx, names...)
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "%d of %d deleted\n", n, len(c.Clients))
		}
		return err
	})
}

type clientsImport struct {
	databaseFlag

	File   string `arg:"" optional:"" default:"-" help:"The file; - or none is standard input."`
	Config string `env:"WEIR_CONFIG" type:"existingfile" placeholder:"FILE" help:"The policies: a plan that none of them has is then an error, and so is a limit that they refuse."`
}

// Run sets the clients of the file.
func (c *clientsImport) Run(ctx context.Context, p *program) error {
	in := io.Reader(os.Stdin)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	check, err := clientCheck(ctx, c.Config)
	if err != nil {
		return err
	}
	return c.with(ctx, p, func(d *clients.Database) error {
		n, err := d.Put(ctx, readClients(in, check))
		if err == nil {
			_, err = fmt.Fprintf(p.stdout, "%d set\n", n)
		}
		return err
	})
}

// maxClientLine bounds a line of an import, in bytes.
const maxClientLine = 1 << 16

// readClients reads a client from each line. An error comes with the line's number, and last.
func readClients(in io.Reader, check func(clients.Client) error) iter.Seq2[clients.Client, error] {
	return func(yield func(clients.Client, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxClientLine)
		n := 0
		for lines.Scan() {
			n++
			if strings.TrimSpace(lines.Text()) == "" {
				continue
			}
			var c clients.Client
			err := json.Unmarshal(lines.Bytes(), &c)
			if err == nil {
				if err = check(c); err != nil {
					err = fmt.Errorf("client %q: %w", c.Name, err)
				}
			}
			if err != nil {
				err = fmt.Errorf("line %d: %w", n, err)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(clients.Client{}, fmt.Errorf("line %d: %w", n+1, err))
		}
	}
}

// clientCheck returns a function that checks a client under the policies of a file, without the
// name in the error. Without a file the function accepts all clients.
func clientCheck(ctx context.Context, file string) (func(clients.Client) error, error) {
	if file == "" {
		return func(clients.Client) error { return nil }, nil
	}
	set, err := policy.Load(ctx, file, policy.Options{})
	if err != nil {
		return nil, err
	}
	good := map[string]bool{} // plans and limits, with and without a source in the name
	return func(c clients.Client) error {
		text := fmt.Sprint(policy.NamesSource(c.Name), c.Plan, "\n") + clients.FormatLimits(c.Limits)
		if good[text] {
			return nil
		}
		err := set.ClientCheck()(c.Name, &policy.Grant{Plan: c.Plan, Limits: c.Limits})
		good[text] = err == nil
		return err
	}, nil
}

// A date is a time, or a day, which begins at midnight of UTC.
type date struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *date) UnmarshalText(text []byte) (err error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if d.Time, err = time.Parse(layout, string(text)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%q is no time; accepted: 2026-06-01 or 2026-06-01T12:00:00Z", text)
}
