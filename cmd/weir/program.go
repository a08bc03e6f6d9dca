package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/store/memory"
	"github.com/weirlimit/weir/store/postgres"
)

// A commandLine is what kong reads the arguments into.
type commandLine struct {
	Serve     serveCommand     `cmd:"" help:"Serve decisions over the Redis protocol and HTTP."`
	Migration migrationCommand `cmd:"" help:"Print the SQL that makes the table of a store in PostgreSQL, for who has the right to."`
	Policy    policyCommand    `cmd:"" help:"Look at files of policies: check them, and explain what they do."`
	Users     usersCommand     `cmd:"" help:"Edit and check the file of users: who may connect, and do what."`
	Clients   clientsCommand   `cmd:"" help:"Look at and edit which client has which plan or limits."`
	DB        dbCommand        `cmd:"" name:"db" help:"Look after the database of clients."`
	Limit     limitCommand     `cmd:"" help:"Explain limits."`
	Replay    replayCommand    `cmd:"" help:"Run access logs against limits, on the log's own time."`
	Bounds    boundsCommand    `cmd:"" help:"Recompute what each algorithm admits at worst."`
	Version   versionCommand   `cmd:"" help:"Print the version, as --version does."`
	Help      helpCommand      `cmd:"" help:"Print the help of a command, as --help does."`

	PrintVersion printVersion `name:"version" env:"-" help:"Print the version and exit."`
}

// printVersion is the flag --version.
type printVersion bool

// BeforeReset implements kong's hook.
func (printVersion) BeforeReset(k *kong.Kong, p *program) error {
	err := versionCommand{}.Run(p)
	k.Exit(exitOK)
	return err
}

// helpCommand prints the help of a command, or of weir.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command, such as serve or policy check. Default: weir itself."`
}

// Run prints the help.
func (c *helpCommand) Run(ctx context.Context, p *program) error {
	if p.run(ctx, append(c.Command, "--help")) != exitOK {
		return errNoCommand
	}
	return nil
}

// errNoCommand is the error for the help of a command that does not exist, which run has printed.
var errNoCommand = errors.New("no such command")

// The exit codes of the program.
const (
	exitOK    = 0
	exitError = 1 // what was asked for went wrong
	exitUsage = 2 // the arguments make no sense
)

// A program is one run of weir, with its own output, so that tests can run it as it is.
type program struct {
	stdout, stderr io.Writer
	// serving, if not nil, is called with a server that listens, before it serves.
	serving func(*server.Server)

	environment *environment // of the arguments of run
}

// parser returns the parser of the arguments, which sets line. exit is called after --help and
// --version.
func (p *program) parser(ctx context.Context, line *commandLine, exit func(int)) (*kong.Kong, error) {
	p.environment = newEnvironment()
	return kong.New(line, append(p.environment.options(),
		kong.Name("weir"),
		kong.Description("weir decides whether a request may pass."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(exit),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.Bind(p),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Vars{
			"resp": server.DefaultRESP, "http": server.DefaultHTTP, "admin": server.DefaultAdmin,
			"grace": server.DefaultGrace.String(), "table": postgres.DefaultTable, "store": server.StoreAccepted(), "memory": strconv.Itoa(memory.DefaultMaxBytes>>30) + "GiB",
			"max_period":      period(server.DefaultMaxPeriod),
			"max_connections": strconv.Itoa(server.DefaultMaxConnections),
			"clients":         clients.Accepted,
		},
	)...)
}

// run runs the command in the arguments, until its end or the end of ctx, and returns the exit
// code. Without arguments it prints the help.
func (p *program) run(ctx context.Context, args []string) int {
	var line commandLine
	helped := false
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := p.parser(ctx, &line, func(int) { helped = true })
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
	case errors.Is(err, errNoCommand):
		return exitUsage
	case err != nil:
		return p.fail(err, exitError)
	}
	return exitOK
}

// fail prints an error and returns the exit code.
func (p *program) fail(err error, code int) int {
	if policies, ok := errors.AsType[*policy.ConfigError](err); ok && policies.File != "" { // lines of file:line:column, for programs
		_, _ = fmt.Fprintln(p.stderr, err)
		return code
	}
	_, _ = fmt.Fprintf(p.stderr, "weir: %s\n", p.message(err))
	return code
}

// message returns the text of an error. A field of the server's configuration is shown as its flag,
// with the variable if the environment set the flag.
func (p *program) message(err error) string {
	if config, ok := errors.AsType[*server.ConfigError](err); ok {
		err = fmt.Errorf("--%w", config)
	}
	return p.environment.origin(strings.TrimPrefix(err.Error(), "weir: "))
}
