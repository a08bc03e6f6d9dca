//go:build unix

package acceptance_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store/redis"
)

// holderVariable has the address of the engine in a process that holds a lease for
// TestLeaseOfAStoppedProcess.
const holderVariable = "WEIR_TEST_LEASE_HOLDER"

// A stopped process loses its lease, a second process gets the place, and the first process reports
// the loss when it goes on.
func TestLeaseOfAStoppedProcess(t *testing.T) {
	if url := os.Getenv(holderVariable); url != "" {
		holdLease(t, url)
		return
	}
	url := testengine.Redis(t).URL()
	l := leases(t, url)
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLeaseOfAStoppedProcess$")
	holder.Env = append(os.Environ(), holderVariable+"="+url)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the other process writes %q, want %q", lines.Text(), want)
		}
	}
	expect("held")
	if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	lease, err := l.Acquire(t.Context(), "k", 1) // when the lease of the stopped process has ended
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(in, "release"); err != nil {
		t.Fatal(err)
	}
	expect("lost: true, context: true")
	if err := holder.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	_ = holder.Wait()
	// A busy machine may have lost this lease too, but the place is given back.
	if err := lease.Release(t.Context()); err != nil && !errors.Is(err, weir.ErrLeaseLost) {
		t.Error(err)
	}
	again, err := l.Acquire(t.Context(), "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Release(t.Context())
}

func leases(t *testing.T, url string) *weir.Limiter {
	t.Helper()
	s, err := redis.Open(t.Context(), url, redis.Options{Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return limiter(t, "concurrent 1 lease=1s", weir.WithStore(s))
}

// holdLease is the second process. It holds a lease until it reads a line.
func holdLease(t *testing.T, url string) {
	t.Helper()
	lease, err := leases(t, url).Acquire(t.Context(), "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx := lease.Context(t.Context())
	fmt.Fprintln(os.Stdout, "held")
	if !bufio.NewScanner(os.Stdin).Scan() {
		t.Fatal("nothing to read")
	}
	lost := errors.Is(lease.Release(t.Context()), weir.ErrLeaseLost)
	<-ctx.Done()
	fmt.Fprintf(os.Stdout, "lost: %t, context: %t\n", lost, errors.Is(context.Cause(ctx), weir.ErrLeaseLost))
}

// On an engine, a released place is reused, and leases outlive their length.
func TestAcquireOnAnEngine(t *testing.T) {
	url := testengine.Redis(t).URL()
	here, there := leases(t, url), leases(t, url)
	lease, err := here.Acquire(t.Context(), "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	acquired := make(chan *weir.Lease)
	go func() {
		next, err := there.Acquire(t.Context(), "k", 1)
		if err != nil {
			t.Error(err)
		}
		acquired <- next
	}()
	if err := lease.Release(t.Context()); err != nil && !errors.Is(err, weir.ErrLeaseLost) {
		t.Error(err)
	}
	if err := (<-acquired).Release(t.Context()); err != nil && !errors.Is(err, weir.ErrLeaseLost) {
		t.Error(err)
	}
}
