package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// processVariable tells a test binary that it is one of the processes of a suite.
const processVariable = "WEIR_STORETEST_PROCESS"

// processes is how many a suite has besides its own.
const processes = 4

// Main runs the tests of a package whose store other processes can share. It belongs in TestMain, because the suite starts the test
// binary again as other processes; there it calls open, with [Harness.Process], for stores that are used until the process
// ends. In the process of the tests, atExit is called when they are over. Main does not return.
func Main(m *testing.M, open func(process string, o Options) (store.Store, error), atExit ...func()) {
	if os.Getenv(processVariable) != "" {
		if err := serve(os.Stdin, os.Stdout, open); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	for _, f := range atExit {
		f()
	}
	os.Exit(code)
}

// A race is many requests at one time, of which each is the same operation under one of the specs, in turn.
type race struct {
	Process  string // of the harness
	Options  Options
	Specs    []store.Spec
	Key      string
	Op       algorithm.Op
	Now      int64
	Requests int
}

// An outcome is the result of a race.
type outcome struct {
	Granted int64 // units
	Error   string
}

func (o *outcome) add(other outcome) {
	o.Granted += other.Granted
	o.Error += other.Error
}

// race runs a race of so many requests in all: on stores of this process, or if there are none in the
// processes of the suite.
func (k *check) race(r race, requests int, stores ...store.Store) outcome {
	k.Helper()
	if len(stores) > 0 {
		r.Requests = requests / len(stores)
		return r.runOn(stores)
	}
	r.Requests = requests / processes
	all, err := k.crew.race(r)
	if err != nil {
		k.Fatalf("%v", err)
	}
	return all
}

// runOn runs the race on each of the stores at the same time.
func (r race) runOn(stores []store.Store) (all outcome) {
	outcomes := make([]outcome, len(stores))
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() { outcomes[i] = r.run(s) })
	}
	wg.Wait()
	for _, o := range outcomes {
		all.add(o)
	}
	return all
}

// run asks, from many goroutines.
func (r race) run(s store.Store) (o outcome) {
	bindings := make([]store.Binding, len(r.Specs))
	for i, spec := range r.Specs {
		var err error
		if bindings[i], err = s.Bind(spec); err != nil {
			return outcome{Error: err.Error()}
		}
	}
	var granted atomic.Int64
	errs := make([]error, r.Requests)
	var wg sync.WaitGroup
	for i := range r.Requests {
		wg.Go(func() {
			v, err := bindings[i%len(bindings)].Do(context.Background(), r.Key, r.Op, r.Now)
			granted.Add(max(0, v.Granted))
			errs[i] = err
		})
	}
	wg.Wait()
	o.Granted = granted.Load()
	if err := errors.Join(errs...); err != nil {
		o.Error = err.Error()
	}
	return o
}

// serve runs races that are told on in, until there are no more.
func serve(in io.Reader, out io.Writer, open func(string, Options) (store.Store, error)) error {
	stores := map[Options]store.Store{}
	races, outcomes := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r race
		if err := races.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if stores[r.Options] == nil {
			s, err := open(r.Process, r.Options)
			if err != nil {
				return err
			}
			stores[r.Options] = s
		}
		if err := outcomes.Encode(r.run(stores[r.Options])); err != nil {
			return err
		}
	}
}

// A crew is the processes of a suite. They start when they are first needed.
type crew struct {
	process string
	members []*member
}

type member struct {
	cmd      *exec.Cmd
	in       io.Closer
	races    *json.Encoder
	outcomes *json.Decoder
	said     *strings.Builder
}

// race has every process run a race at the same time, and returns what came of all.
func (c *crew) race(r race) (all outcome, err error) {
	if err := c.hire(); err != nil {
		return all, err
	}
	r.Process = c.process
	for _, m := range c.members {
		if err := m.races.Encode(r); err != nil {
			return all, m.explain(err)
		}
	}
	for _, m := range c.members {
		var o outcome
		if err := m.outcomes.Decode(&o); err != nil {
			return all, m.explain(err)
		}
		all.add(o)
	}
	return all, nil
}

func (m *member) explain(err error) error {
	m.in.Close()
	return fmt.Errorf("a process of the suite (does TestMain call storetest.Main?): %w, %w: %s", err, m.cmd.Wait(), m.said)
}

func (c *crew) hire() error {
	for len(c.members) < processes {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		m := &member{cmd: exec.Command(exe, "-test.run=^$"), said: &strings.Builder{}} // dismiss ends it
		m.cmd.Env = append(os.Environ(), processVariable+"=1")
		m.cmd.Stderr = m.said
		in, err1 := m.cmd.StdinPipe()
		out, err2 := m.cmd.StdoutPipe()
		if err := errors.Join(err1, err2, m.cmd.Start()); err != nil {
			return err
		}
		m.in, m.races, m.outcomes = in, json.NewEncoder(in), json.NewDecoder(out)
		c.members = append(c.members, m)
	}
	return nil
}

// dismiss ends the processes.
func (c *crew) dismiss() {
	for _, m := range c.members {
		m.in.Close()
		m.cmd.Wait() // what they had to say they have said
	}
	c.members = nil
}
