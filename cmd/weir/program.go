package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/server"
	"github.com/weirlimit/weir/store/memory"
	"github.com/weirlimit/weir/store/postgres"
)

// A commandLine is what kong reads the arguments into.
type commandLine struct {
	Serve     serveCommand     `cmd:"" help:"Serve decisions over the Redis protocol and HTTP."`
	Migration migrationCommand `cmd:"" help:"Print the SQL that makes the table of a store in PostgreSQL, for who has the right to."`
	Policy    policyCommand    `cmd:"" help:"Look at files of policies: check them, and explain what they do."`
	Clients   clientsCommand   `cmd:"" help:"Look at and edit which client has which plan or limits."`
	DB        dbCommand        `cmd:"" name:"db" help:"Look after the database of clients."`
	Limit     limitCommand     `cmd:"" help:"Explain limits."`
	Replay    replayCommand    `cmd:"" help:"Run access logs against limits, on the log's own time."`
	Bounds    boundsCommand    `cmd:"" help:"Recompute what each algorithm admits at worst."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

// The exit codes of the program.
const (
	exitOK    = 0
	exitError = 1 // what was asked for went wrong
	exitUsage = 2 // the arguments make no sense
)

// A program is one run of weir, with its own output, so that tests can run it as it is.
type program struct {
	stdout, stderr io.Writer
	// serving, if not nil, is told of a server that listens, before it serves.
	serving func(*server.Server)
}

// run does what the arguments ask for, until it is done or ctx ends, and returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	var line commandLine
	helped := false
	k, err := kong.New(&line,
		kong.Name("weir"),
		kong.Description("weir decides whether a request may pass."),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(int) { helped = true }),
		kong.Bind(p),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{
			"resp": server.DefaultRESP, "http": server.DefaultHTTP,
			"grace": server.DefaultGrace.String(), "table": postgres.DefaultTable, "store": server.StoreAccepted(), "max_keys": strconv.Itoa(memory.DefaultMaxKeys),
			"max_connections": strconv.Itoa(server.DefaultMaxConnections),
			"clients":         clients.Accepted,
		},
	)
	if err != nil {
		return p.fail(err, exitError)
	}
	command, err := k.Parse(args)
	switch {
	case helped: // kong has printed it
		return exitOK
	case err != nil:
		return p.fail(fmt.Errorf("%w; weir --help shows what is accepted", err), exitUsage)
	}
	err = command.Run()
	switch {
	case errors.Is(err, errShown):
		return exitError
	case err != nil:
		return p.fail(err, exitError)
	}
	return exitOK
}

// fail says what went wrong. A field of the server's configuration is named as the flag that sets it.
func (p *program) fail(err error, code int) int {
	if config, ok := errors.AsType[*server.ConfigError](err); ok {
		err = fmt.Errorf("--%w", config)
	}
	if policies, ok := errors.AsType[*policy.ConfigError](err); ok && policies.File != "" { // lines of file:line:column, for programs
		_, _ = fmt.Fprintln(p.stderr, err)
		return code
	}
	_, _ = fmt.Fprintf(p.stderr, "weir: %s\n", strings.TrimPrefix(err.Error(), "weir: "))
	return code
}
