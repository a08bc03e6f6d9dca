package main

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// An environment sets flags by environment variables. The flag --max-keys of weir serve has
// WEIR_MAX_KEYS; a flag of another command has the names of the command, too: WEIR_REPLAY_COST. A
// tag env:"NAME" gives flags of several commands a common variable, and env:"-" none. An argument
// prevails over a variable, and an empty variable sets nothing.
type environment struct {
	variables map[*kong.Value]string // of flags
	used      map[string]string      // the variable of each flag set by a variable
}

func newEnvironment() *environment {
	return &environment{map[*kong.Value]string{}, map[string]string{}}
}

// options returns kong's options to read the variables and to show them in the help.
func (e *environment) options() []kong.Option {
	return []kong.Option{
		kong.PostBuild(func(k *kong.Kong) error {
			e.name(k.Model.Node, "WEIR")
			return nil
		}),
		kong.ValueFormatter(e.help),
		kong.Resolvers(kong.ResolverFunc(e.resolve)),
	}
}

// name gives variables to the flags of a command and its subcommands.
func (e *environment) name(n *kong.Node, prefix string) {
	for _, f := range n.Flags {
		variable := prefix + "_" + constant(f.Name)
		if len(f.Tag.Envs) > 0 {
			variable = f.Tag.Envs[0]
		}
		f.Envs, f.Tag.Envs = nil, nil // kong takes an empty variable for a value
		if variable != "-" && f.Name != "help" {
			e.variables[f.Value] = variable
		}
	}
	for _, child := range n.Children {
		below := prefix
		if child.Name != "serve" {
			below += "_" + constant(child.Name)
		}
		e.name(child, below)
	}
}

func constant(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// help returns the help of a flag with its variable.
func (e *environment) help(v *kong.Value) string {
	variable := e.variables[v]
	if variable == "" {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " ($" + variable + ")."
}

// resolve returns the value of a flag without an argument, or nil. The error for an invalid value
// names the variable.
func (e *environment) resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	variable := e.variables[f.Value]
	value := os.Getenv(variable)
	if variable == "" || value == "" {
		return nil, nil //nolint:nilnil // kong's way to have no value
	}
	if f.Enum != "" && !f.EnumMap()[value] {
		return nil, fmt.Errorf("%s is %q; accepted: %s", variable, value, strings.Join(f.EnumSlice(), ", "))
	}
	trial := reflect.New(f.Target.Type()).Elem()
	if err := f.Parse(kong.Scan().PushTyped(value, kong.FlagValueToken), trial); err != nil {
		// kong names the flag
		return nil, fmt.Errorf("%s: %s", variable, strings.TrimPrefix(err.Error(), "--"+f.Name+": "))
	}
	f.Set = false // by the trial: kong drops the file name of a flag that is set already
	e.used[f.Name] = variable
	return value, nil
}

// origin adds the variable to the text of an error about a flag.
func (e *environment) origin(text string) string {
	for _, flag := range slices.Sorted(maps.Keys(e.used)) {
		if after, ok := strings.CutPrefix(text, "--"+flag); ok && strings.HasPrefix(after, " ") {
			return e.used[flag] + " sets " + text
		}
	}
	return text
}
