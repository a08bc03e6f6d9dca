package faults

import (
	"context"
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/engines"
)

// processVariable makes the test binary a process of the load.
const processVariable = "WEIR_FAULTS_PROCESS"

// processes returns the number of processes of the load.
func processes() int {
	if testing.Short() {
		return 2
	}
	return 3
}

func TestMain(m *testing.M) {
	if os.Getenv(processVariable) != "" {
		if err := obey(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	code := m.Run()
	if code == 0 && *update {
		code = writeDocs()
	}
	os.Exit(code)
}

// An order starts or stops the load.
type order struct {
	URL  string // "" stops
	Seed uint64
}

// A message is the answer of a process: its progress from time to time, and a report at the end.
type message struct {
	Progress progress
	Report   *report
	Error    string
}

// obey carries out orders until there are no more.
func obey(in io.Reader, out io.Writer) error {
	orders, messages := gob.NewDecoder(in), gob.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if o.URL == "" {
			continue
		}
		m := message{}
		var err error
		if m.Report, err = o.run(orders, messages); err != nil {
			m.Error = err.Error()
		}
		if err := messages.Encode(m); err != nil {
			return err
		}
	}
}

// run makes load until the next order.
func (o order) run(orders *gob.Decoder, messages *gob.Encoder) (*report, error) {
	before := runtime.NumGoroutine()
	s, err := engines.Open(context.Background(), o.URL, engines.Options{})
	for range polls {
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		s, err = engines.Open(context.Background(), o.URL, engines.Options{}) // the machine is busy
	}
	if err != nil {
		return nil, err
	}
	var count counter
	stop, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over(done, 10*time.Millisecond) {
			_ = messages.Encode(message{Progress: count.load()}) // the report shows a lasting error
		}
	})
	wg.Go(func() {
		_ = orders.Decode(new(order)) // also at the end of the parent
		close(stop)
	})
	before++ // the goroutine that sends the progress
	r, err := drive(s, before, o.Seed, &count, stop)
	close(done)
	wg.Wait()
	return r, err
}

// A worker is a process of the load.
type worker struct {
	cmd     *exec.Cmd
	in      io.Closer
	orders  *gob.Encoder
	reports chan message

	mu       sync.Mutex
	progress progress
	messages int // received
}

// A crew is all processes of the load on one engine. They start when they are first needed.
type crew struct{ workers []*worker }

func (c *crew) hire() error {
	for len(c.workers) < processes() {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		w := &worker{cmd: exec.Command(exe, "-test.run=^$"), reports: make(chan message, 1)}
		w.cmd.Env = append(os.Environ(), processVariable+"=1")
		w.cmd.Stderr = os.Stderr
		in, err1 := w.cmd.StdinPipe()
		out, err2 := w.cmd.StdoutPipe()
		if err := errors.Join(err1, err2, w.cmd.Start()); err != nil {
			return err
		}
		w.in, w.orders = in, gob.NewEncoder(in)
		go w.listen(gob.NewDecoder(out))
		c.workers = append(c.workers, w)
	}
	return nil
}

// listen receives messages until the process ends.
func (w *worker) listen(messages *gob.Decoder) {
	for {
		var m message
		if err := messages.Decode(&m); err != nil {
			close(w.reports)
			return
		}
		if m.Report != nil || m.Error != "" {
			w.reports <- m
			continue
		}
		w.mu.Lock()
		w.progress = m.Progress
		w.messages++
		w.mu.Unlock()
	}
}

func (w *worker) now() (progress, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.progress, w.messages
}

// fatalf ends the test and the processes. The next test starts new processes.
func (c *crew) fatalf(t testing.TB, format string, args ...any) {
	t.Helper()
	for _, w := range c.workers {
		w.cmd.Process.Kill()
	}
	c.end()
	t.Fatalf(format, args...)
}

// start starts the load on a store.
func (c *crew) start(t testing.TB, url string) {
	t.Helper()
	if err := c.hire(); err != nil {
		c.fatalf(t, "starting processes: %v", err)
	}
	for _, w := range c.workers {
		w.mu.Lock()
		w.progress = progress{}
		w.mu.Unlock()
		if err := w.orders.Encode(order{URL: url, Seed: rand.Uint64()}); err != nil {
			c.fatalf(t, "starting the load: %v", err)
		}
	}
}

// await returns when a condition holds for the progress of each process. Only the test binary has
// a deadline.
func (c *crew) await(t testing.TB, holds func(worker int, p progress) bool) {
	t.Helper()
	for i, w := range c.workers {
		for {
			if p, _ := w.now(); holds(i, p) {
				break
			}
			select {
			case m, ok := <-w.reports:
				c.fatalf(t, "a process of the load has ended too soon: %v, %s", ok, m.Error)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// more returns when each process has ended some more calls.
func (c *crew) more(t testing.TB, calls int64) {
	t.Helper()
	before := c.look(t)
	c.await(t, func(i int, p progress) bool { return p.Ended >= before[i].Ended+calls })
}

// look returns the progress of each process, of now or later. The next message may be older; the
// second is not.
func (c *crew) look(t testing.TB) (all []progress) {
	t.Helper()
	var seen []int
	for _, w := range c.workers {
		_, n := w.now()
		seen = append(seen, n)
	}
	c.await(t, func(i int, _ progress) bool {
		_, n := c.workers[i].now()
		return n >= seen[i]+2
	})
	for _, w := range c.workers {
		p, _ := w.now()
		all = append(all, p)
	}
	return all
}

// stop ends the load and returns the reports.
func (c *crew) stop(t testing.TB) (all []*report) {
	t.Helper()
	for _, w := range c.workers {
		if err := w.orders.Encode(order{}); err != nil {
			c.fatalf(t, "stopping the load: %v", err)
		}
	}
	for _, w := range c.workers {
		m, ok := <-w.reports
		if !ok || m.Error != "" {
			c.fatalf(t, "a process of the load has ended: %v, %s", ok, m.Error)
		}
		all = append(all, m.Report)
	}
	return all
}

// end ends the processes.
func (c *crew) end() {
	for _, w := range c.workers {
		w.in.Close()
		_ = w.cmd.Wait() // its errors are on the standard error
	}
	c.workers = nil
}
