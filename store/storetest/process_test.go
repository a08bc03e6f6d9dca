package storetest

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

func TestMain(m *testing.M) { Main(m, openProcess) }

// openProcess opens the stores of the suite's other processes: "alone" is one that is not shared, and should be; else it
// is the address of a Desk.
func openProcess(process string, o Options) (store.Store, error) {
	if process == "alone" {
		return memory.New(memory.Options{}), nil
	}
	client, err := rpc.Dial("tcp", process)
	return &visitor{client: client, options: o}, err
}

// A Desk lets other processes use a shelf.
type Desk struct{ shelf *shelf }

// Wish is an operation on it.
type Wish struct {
	Options Options
	Spec    store.Spec
	Key     string
	Op      algorithm.Op
	Now     int64
}

// Do carries out a wish.
func (d *Desk) Do(w Wish, v *algorithm.Verdict) error {
	b, err := d.shelf.open(w.Options).Bind(w.Spec)
	if err != nil {
		return err
	}
	*v, err = b.Do(context.Background(), w.Key, w.Op, w.Now)
	return err
}

// A visitor is a store at a desk.
type visitor struct {
	client  *rpc.Client
	options Options
}

type visitorBinding struct {
	*visitor
	spec store.Spec
}

func (s *visitor) Bind(spec store.Spec) (store.Binding, error) { return visitorBinding{s, spec}, nil }

func (b visitorBinding) Do(_ context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, err error) {
	err = b.client.Call("Desk.Do", Wish{b.options, b.spec, key, op, now}, &v)
	return v, err
}

// desk serves a shelf until the test ends, and returns its address.
func desk(t *testing.T, s *shelf) string {
	t.Helper()
	server := rpc.NewServer()
	if err := server.Register(&Desk{s}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn)
		}
	}()
	return listener.Addr().String()
}

// A store that is right keeps all rules: what the faults break is the faults' doing.
func TestRightStoreKeepsAllRules(t *testing.T) {
	s := newShelf(faults{})
	h := shelfHarness(s)
	h.Process = desk(t, s)
	Run(t, h)
}

func TestProcessesThatDoNotShareAreFound(t *testing.T) {
	h := shelfHarness(newShelf(faults{}))
	h.Process = "alone"
	if r := holds(t, h, "S3-processes"); !r.failed || !strings.Contains(r.said.String(), "admitted 100, want 25") {
		t.Errorf("four processes with a store each were not found out, but:\n%s", r.said.String())
	}
}

func TestUpdatesLostBetweenProcessesAreFound(t *testing.T) {
	s := newShelf(faults{unlocked: func(*shelfBinding, algorithm.Op) bool { return true }})
	h := shelfHarness(s)
	h.Process = desk(t, s)
	if r := holds(t, h, "S3-processes"); !r.failed {
		t.Errorf("lost updates were not found, but:\n%s", r.said.String())
	}
}

func TestProcessThatDoesNotStartIsExplained(t *testing.T) {
	h := shelfHarness(newShelf(faults{}))
	h.Process = "127.0.0.1:1"
	if r := holds(t, h, "S3-processes"); !r.failed || !strings.Contains(r.said.String(), "connection refused") {
		t.Errorf("a process that can't open its store was explained with:\n%s", r.said.String())
	}
}

func TestFaultsAtRestartAreFound(t *testing.T) {
	for fault, restart := range map[string]func(s *shelf){
		"what a persistent engine held is gone": func(s *shelf) { clear(s.cells) },
		"requests are denied in between": func(s *shelf) {
			was := s.faults.verdict
			s.faults.verdict = func(_ *shelfBinding, v algorithm.Verdict) algorithm.Verdict {
				if v.Granted > 0 {
					v.Granted = -1
				}
				return v
			}
			s.mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			s.mu.Lock()
			s.faults.verdict = was
		},
	} {
		s := newShelf(faults{})
		h := shelfHarness(s)
		h.Restart = func(testing.TB) {
			s.mu.Lock()
			defer s.mu.Unlock()
			restart(s)
		}
		if r := holds(t, h, "restart"); !r.failed {
			t.Errorf("%s: not found, but:\n%s", fault, r.said.String())
		}
	}
}

// brokenVariable tells TestBrokenStore to run.
const brokenVariable = "WEIR_STORETEST_BROKEN"

// TestBrokenStore runs the suite on a store whose resets take patterns: it is for TestRunNamesTheRule.
func TestBrokenStore(t *testing.T) {
	if os.Getenv(brokenVariable) == "" {
		t.Skip("it fails: TestRunNamesTheRule runs it")
	}
	for _, m := range keyMutants {
		if m.rules[0] == "S11-reset" {
			Run(t, shelfHarness(newShelf(m.faults)))
			return
		}
	}
}

func TestRunNamesTheRule(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenStore$", "-test.v", "-test.short")
	cmd.Env = append(os.Environ(), brokenVariable+"=1")
	text, err := cmd.CombinedOutput()
	if !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("the suite on a broken store: error %v", err)
	}
	failed := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "--- FAIL: TestBrokenStore/") {
			failed++
		}
	}
	if !strings.Contains(string(text), "--- FAIL: TestBrokenStore/S11-reset") || !strings.Contains(string(text), sentenceOf("S11-reset")) || failed != 1 {
		t.Errorf("the suite said of a store whose resets take patterns:\n%s", text)
	}
}
