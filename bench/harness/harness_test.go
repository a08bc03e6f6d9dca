package harness

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

type word string

func (w word) Key() string { return string(w) }

var command = Command{
	Name: "test", Rounds: 5, Time: time.Second, Least: 10 * time.Millisecond, Most: time.Minute,
	Flags:   []string{"workloads", "benchstat", "profiles", "skip-memory", "passed", "keys", "store-keys", "stores", "goroutines", "fill"},
	Measure: func(context.Context, Slot) (any, error) { return nil, errors.New("measured") },
}

func TestFlagsNameWhatTheyAccept(t *testing.T) {
	for flags, want := range map[string]string{
		"-rounds 0": "-rounds is 0", "-rounds 101": "-rounds is 101", "-time 1ms": "-time is 1ms", "-time 2m": "-time is 2m", "more": `"more"`,
		"-keys 0": "-keys is 0", "-store-keys -1": "-store-keys is -1", "-fill -1": "-fill is -1", "-goroutines 1,x": `"1,x"`, "-goroutines 0": `"0"`,
		"-slot x": `-slot is "x"`, "-slot {}": "measured",
	} {
		if err := Main(t.Context(), command, strings.Fields(flags), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", flags, err, want)
		}
	}
	s, err := command.parse(nil, io.Discard)
	if err != nil || s.Rounds != 5 || s.Time != time.Second || s.Keys != 1_000_000 || !slices.Equal(s.Stores, []string{"redis"}) || !slices.Equal(s.Goroutines, []int{1, 16, 256}) {
		t.Errorf("defaults are %+v, %v", s, err)
	}
}

func TestACommandHasNoFlagsOfOthers(t *testing.T) {
	few := Command{Name: "few", Rounds: 1, Run: func(context.Context, Settings, io.Writer, io.Writer) error { return nil }}
	for _, name := range append(command.Flags, "slot") {
		if err := Main(t.Context(), few, []string{"-" + name, "1"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("-%s: error is %v", name, err)
		}
	}
	if err := Main(t.Context(), few, []string{"-h"}, io.Discard, io.Discard); err != nil {
		t.Errorf("-h: %v", err)
	}
}

func TestSelectionNamesWhatItAccepts(t *testing.T) {
	all := []word{"weir", "weir, batches", "bare", "hot"}
	if got, err := Contenders(Settings{Only: "batch; ba"}, all); err != nil || !slices.Equal(got, []word{"weir, batches", "bare"}) {
		t.Errorf("-only: %q, %v", got, err)
	}
	if got, err := Workloads(Settings{Workloads: "hot,bare"}, all); err != nil || !slices.Equal(got, []word{"bare", "hot"}) {
		t.Errorf("-workloads: %q, %v", got, err)
	}
	if got, err := Workloads(Settings{}, all); err != nil || len(got) != len(all) {
		t.Errorf("all: %q, %v", got, err)
	}
	for want, f := range map[string]func() error{
		`-only is "x", which selects none; accepted: weir; weir, batches; bare; hot`: func() error { _, err := Contenders(Settings{Only: "x"}, all); return err },
		`-workloads is "ho", which selects none`:                                     func() error { _, err := Workloads(Settings{Workloads: "ho"}, all); return err },
		`peer is "ba"; accepted: weir; weir, batches; bare; hot`:                     func() error { _, err := Find("peer", "ba", all); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

func TestRoundsStartWithTheNextContender(t *testing.T) {
	var order []string
	err := Rounds(2, io.Discard, []word{"a", "b"}, []word{"x", "y"}, func(w, c word) error {
		order = append(order, string(w+c))
		return nil
	})
	if want := "ax ay bx by ay ax by bx"; err != nil || strings.Join(order, " ") != want {
		t.Errorf("order is %q, %v, want %s", order, err, want)
	}
}

func TestNamesInBenchstatHaveNoCharacterOfTheFormat(t *testing.T) {
	if s := slug("weir, X-* a/b=c d"); s != "weir-X--a-b-c-d" {
		t.Errorf("got %q", s)
	}
	if s := title("hot-cores"); s != "HotCores" {
		t.Errorf("got %q", s)
	}
}

func TestAFaultNamesThePair(t *testing.T) {
	r := Results{{Contender: "a", Workload: "hot", Timing: Timing{Requests: 10, Admitted: 9, Denied: 1}}, {Contender: "a", Workload: "hot", Timing: Timing{Requests: 5, Admitted: 5}}}
	if got := r.Fault("a", "hot", "hot key", false); got != "- a, hot key: admitted 14 of 15, should have been all\n" {
		t.Errorf("got %q", got)
	}
	if got := r.Fault("a", "hot", "hot key", true); got != "- a, hot key: denied 1 of 15, should have been all\n" {
		t.Errorf("got %q", got)
	}
	if got := r[1:].Fault("a", "hot", "hot key", false); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestAProcessThatEndsIsReported(t *testing.T) {
	p, err := StartServer(t.Context(), "0", t.TempDir(), nil, []string{"sh", "-c", "echo reason >&2; exit 3"}, func(context.Context) error { return errors.New("refused") })
	if p == nil {
		t.Fatal(err)
	}
	p.Stop()
	if err == nil || !strings.Contains(err.Error(), "sh ended before it served: exit status 3\nrefused: reason") {
		t.Errorf("error is %v", err)
	}
}
