package resp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// panicStore panics in decisions on the key "bad".
type panicStore struct{ store.Store }

type panicBinding struct{ store.Binding }

func (s panicStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return panicBinding{b}, err
}

func (b panicBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if key == "bad" {
		panic("the store is broken")
	}
	return b.Binding.Do(ctx, key, op, now)
}

// slowStore takes ten seconds for each decision.
type slowStore struct{ store.Store }

type slowBinding struct{ store.Binding }

func (s slowStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return slowBinding{b}, err
}

func (b slowBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	time.Sleep(10 * time.Second)
	return b.Binding.Do(ctx, key, op, now)
}

func TestPanicEndsItsConnectionOnly(t *testing.T) {
	for name, test := range map[string]struct {
		waits    bool
		commands string
		replies  string // before the connection ends
	}{
		"one command":            {false, "WEIR.TAKE bad 5/1h\r\nPING\r\n", ""},
		"a batch":                {false, "WEIR.TAKE good 5/1h\r\nWEIR.TAKE bad 5/1h\r\n", ""},
		"a transaction":          {false, "MULTI\r\nWEIR.TAKE bad 5/1h\r\nEXEC\r\n", ""},
		"one command, an engine": {true, "WEIR.TAKE bad 5/1h\r\n", ""},
		"several, an engine": {true, "WEIR.PEEK good 5/1h\r\nWEIR.PEEK bad 5/1h\r\nWEIR.PEEK bad 5/1h\r\nWEIR.PEEK good 5/1h\r\n",
			"*6 -ERR no decision could be made, try again -ERR no decision could be made, try again *6"},
	} {
		log := new(safeText)
		panics := guard.NewPanics(newLogger(log))
		server, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(panicStore{memory.New(memory.Options{})}), Waits: test.waits, Panics: panics}})
		other := dial(t, address)
		other.do("PING")
		c := dial(t, address)
		c.send(test.commands)
		var replies []string
		for line := range strings.Lines(c.expectClosed()) {
			if line[0] != ':' {
				replies = append(replies, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(replies, " "); test.replies != "" && got != test.replies {
			t.Errorf("%s: the replies are %q, want %q", name, got, test.replies)
		}
		if got := other.do("WEIR.TAKE other 5/1h"); !strings.HasPrefix(got, "[1 5 4 ") {
			t.Errorf("%s: another connection gets %q", name, got)
		}
		eventually(t, "the connection is forgotten", func() bool { return server.Stats().Connections == 1 })
		if s := server.Stats(); s.Reasons[guard.Panic] != 1 || s.Cut != 1 {
			t.Errorf("%s: %+v", name, s)
		}
		total := int64(0)
		for _, n := range panics.Counts() {
			total += n
		}
		if total == 0 || !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "the store is broken") ||
			!strings.Contains(log.String(), "panicBinding") {
			t.Errorf("%s: %d panics, and the log has %s", name, total, log.String())
		}
	}
}
