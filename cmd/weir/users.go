package main

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirlimit/weir/internal/server/access"
)

// usersCommand edits and checks the file of users.
type usersCommand struct {
	Add    usersAdd    `cmd:"" help:"Add a user with a new secret, which is printed once, or with a secret from standard input."`
	Check  usersCheck  `cmd:"" help:"Check the file, or explain whether a user may do something. The exit code is 1 if not."`
	List   usersList   `cmd:"" help:"List the users with their rights, without secrets."`
	Delete usersDelete `cmd:"" help:"Delete a user. Connections of the user end their rights at once."`
}

// usersFile names the file of users.
type usersFile struct {
	Users string `required:"" env:"WEIR_USERS" placeholder:"FILE" help:"The file of users, as weir serve has it."`
}

// usersAdd adds a user.
type usersAdd struct {
	Name    string   `arg:"" help:"The name of the user."`
	Users   string   `env:"WEIR_USERS" placeholder:"FILE" help:"The file of users, as weir serve has it. It is made if there is none. Default: the line of the user goes to standard output."`
	Rights  string   `placeholder:"RULES" help:"The rights, such as '+take ~name:api:* ~key:*', or '+@all ~*' for everything. Default: none."`
	Cert    []string `sep:"none" placeholder:"KIND:NAME" help:"A name in a client certificate, such as dns:web.example.com, cn:web, uri:spiffe://x/web or email:web@example.com. The user then needs no secret."`
	Stdin   bool     `help:"Read the secret from standard input, one line."`
	Off     bool     `help:"The user cannot log in yet."`
	Replace bool     `help:"Replace the user of this name, if there is one."`
}

// secretBytes is how many random bytes a new secret has.
const secretBytes = 24

// Run adds the user.
func (c *usersAdd) Run(p *program) error {
	words := []string{"user", c.Name, "on"}
	if c.Off {
		words[2] = "off"
	}
	secret, err := c.secret(os.Stdin)
	if err != nil {
		return err
	}
	if secret != "" {
		hash, err := access.Hash(secret)
		if err != nil {
			return err
		}
		words = append(words, hash)
	}
	for _, name := range c.Cert {
		words = append(words, "cert:"+name)
	}
	line := strings.Join(append(words, strings.Fields(c.Rights)...), " ")
	if c.Users == "" {
		if _, err := access.Parse([]byte(line), "user"); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(p.stdout, line)
	} else if err := access.Add(c.Users, line, c.Replace); err != nil {
		if errors.Is(err, access.ErrExists) {
			return fmt.Errorf("user %s exists in %s; accepted: another name, or --replace", c.Name, c.Users)
		}
		return err
	}
	if secret != "" && !c.Stdin {
		return c.show(p, secret)
	}
	return nil
}

// secret returns the secret of the user: of standard input, or random. It is "" for a user with a
// certificate only.
func (c *usersAdd) secret(stdin io.Reader) (string, error) {
	switch {
	case c.Stdin:
		line, err := bufio.NewReader(io.LimitReader(stdin, 1<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		secret := strings.TrimRight(line, "\r\n")
		return secret, access.CheckSecret(secret)
	case len(c.Cert) > 0:
		return "", nil
	}
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// show prints a new secret, which nothing else has.
func (c *usersAdd) show(p *program, secret string) error {
	if c.Users == "" { // standard output has the line
		_, err := fmt.Fprintf(p.stderr, "The secret of %s, which is shown once: %s\n", c.Name, secret)
		return err
	}
	_, err := fmt.Fprintln(p.stdout, secret)
	return err
}

// usersCheck checks the file.
type usersCheck struct {
	usersFile

	User  string `arg:"" optional:"" help:"The user whose rights to explain."`
	Right string `arg:"" optional:"" help:"The right: take, check, refund or admin."`
	Name  string `arg:"" optional:"" help:"The name of the limiter, or the policy of a check. Default: a limit without a name."`
	Key   string `arg:"" optional:"" help:"The key."`
}

// Run checks the file, or a right.
func (c *usersCheck) Run(p *program) error {
	table, err := loadUsers(c.Users)
	if err != nil {
		return err
	}
	if c.User == "" {
		_, err := fmt.Fprintf(p.stdout, "%s: %d users\n", c.Users, table.Len())
		return err
	}
	user := table.User(c.User)
	if user == nil {
		return fmt.Errorf("user is %q; accepted: a user of %s", c.User, c.Users)
	}
	if c.Right == "" {
		_, err := fmt.Fprintln(p.stdout, user.Describe())
		return err
	}
	right, ok := access.ParseRight(c.Right)
	if !ok {
		return fmt.Errorf("right is %q; accepted: %s", c.Right, access.Rights)
	}
	may, why := user.Explain(right, c.Name, c.Key)
	if !may {
		_, _ = fmt.Fprintln(p.stdout, "no: "+why)
		return errShown
	}
	_, err = fmt.Fprintln(p.stdout, why)
	return err
}

// usersList lists the users.
type usersList struct{ usersFile }

// Run lists the users.
func (c *usersList) Run(p *program) error {
	table, err := loadUsers(c.Users)
	if err != nil {
		return err
	}
	for _, name := range table.Names() {
		if _, err := fmt.Fprintln(p.stdout, table.User(name).Describe()); err != nil {
			return err
		}
	}
	return nil
}

// usersDelete deletes a user.
type usersDelete struct {
	usersFile

	Name string `arg:"" help:"The name of the user."`
}

// Run deletes the user.
func (c *usersDelete) Run() error {
	err := access.Delete(c.Users, c.Name)
	if errors.Is(err, access.ErrUnknown) {
		return fmt.Errorf("user is %q; accepted: a user of %s", c.Name, c.Users)
	}
	return err
}

// loadUsers reads the file of users.
func loadUsers(path string) (*access.Table, error) {
	table, err := access.Load(path)
	if err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	return table, nil
}
