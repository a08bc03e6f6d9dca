package remote_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
)

func take(t testing.TB, b store.Binding, key string) algorithm.Verdict {
	t.Helper()
	v, err := b.Do(t.Context(), key, algorithm.Op{Cost: 1}, store.OwnClock)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestURLsRefused(t *testing.T) {
	for url, want := range map[string]string{
		"redis://h":                            "scheme",
		"h:6380":                               "scheme",
		"weir://":                              "server",
		"weir://h:x":                           "server",
		"weir://h:0":                           "server",
		"weir://a,b":                           "server",
		"weir://h/3":                           "server",
		"weir://hunter2@h":                     "user",
		"weir://:hunter2@h":                    "user",
		"weir://user@h":                        "user",
		"weir://user:hunter2%zz@h":             "user",
		"weir://user:hunter2/@h":               "@",
		"weir://user:sec?ret@h":                "@",
		"user:hunter2@://h":                    "scheme",
		"weir://h?ca=ca.pem":                   "ca",
		"weirs://h?ca=url.go":                  "PEM",
		"weirs://h?cert=url.go":                "cert and key",
		"weirs://h?ca=url.go&ca=a":             "ca",
		"weirs://h?insecure_skip_verify=maybe": "insecure_skip_verify",
		"weir://h?timeout=5":                   "timeout",
		"weir://h?timeout=-1s":                 "timeout",
		"weir://h?prefix=a%20b":                "prefix",
		"weir://h?db=1":                        "db",
		"weir://h?prefix=a;b":                  "parameters",
		"weir://h?prefix=a&prefix=b":           "prefix",
	} {
		s, err := remote.Open(t.Context(), url, remote.Options{})
		if err == nil {
			s.Close()
			t.Errorf("%s is accepted", url)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "accepted: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want one about the %s", url, err, want)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	if _, err := remote.Open(t.Context(), "weir://127.0.0.1:1", remote.Options{}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("nobody there: %v", err)
	}
	redis := testengine.Redis(t)
	if _, err := remote.Open(t.Context(), "weir://"+redis.Addr(), remote.Options{}); err == nil || !strings.Contains(err.Error(), "not a weir server") {
		t.Errorf("over Redis: %v", err)
	}
	d := start(t, server.Config{})
	if _, err := remote.Open(t.Context(), d.url(), remote.Options{TrustClientTime: true}); !errors.Is(err, store.ErrClientTime) {
		t.Errorf("times for a server that does not trust them: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := remote.Open(ctx, d.url(), remote.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// Whoever accepts a connection and says nothing is given up after the timeout.
func TestServerThatSaysNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := remote.Open(t.Context(), "weir://"+l.Addr().String()+"?timeout=50ms", remote.Options{}); err == nil {
		t.Error("a server that sends nothing was opened")
	}
}

func TestOperationIsGivenUpAfterTheTimeout(t *testing.T) {
	d := start(t, server.Config{Opened: newStuck(t)})
	s := open(t, d.url(), remote.Options{Timeout: 30 * time.Millisecond})
	b := bind(t, s, limit("9/1h"))
	if _, err := b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "known") {
		t.Errorf("got %v", err)
	}
	if _, err := b.(store.Batcher).TakeMany(t.Context(), make([]store.KeyCost, 3), store.OwnClock, nil); !errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, store.ErrUnavailable) { // the check after the first call has had no answer either
		t.Errorf("a batch: %v", err)
	}
	if c := s.Counts(); c.Timeouts != 2 {
		t.Errorf("%+v was counted, want 2 timeouts", c)
	}
}

// stuck is a store that never answers.
type stuck struct{ end <-chan struct{} }

func newStuck(t testing.TB) stuck { return stuck{t.Context().Done()} }

func (s stuck) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (s stuck) Do(ctx context.Context, _ string, _ algorithm.Op, _ int64) (v algorithm.Verdict, err error) {
	select {
	case <-ctx.Done():
	case <-s.end:
	}
	return v, errors.New("stuck")
}

// refusing is a store that refuses every limit, as an engine may.
type refusing struct{ error }

func (r refusing) Bind(spec store.Spec) (store.Binding, error) {
	if spec.Name == "weir.check" {
		return stuck{}, nil
	}
	return nil, r.error
}

func TestLimitErrorsComeBackAsTheyWere(t *testing.T) {
	for _, want := range []algorithm.LimitError{
		{Field: "count", Value: "9007199254740993", Accept: "up to 2251799813685248 in this store"},
		{Field: "text", Value: `"a; accepted: \"b"`, Accept: "something; accepted: else"},
		{Field: "period", Value: "1.5µs", Accept: "a whole number of 1µs in this store"},
	} {
		d := start(t, server.Config{Opened: refusing{&want}})
		s := open(t, d.url(), remote.Options{})
		_, err := bind(t, s, limit("9/1h")).Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
		var got *algorithm.LimitError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%+v came back as %v", want, err)
		}
		if n := s.Counts().Failures; n != 0 {
			t.Errorf("%d failures were counted for a limit that makes no sense", n)
		}
	}
}

func TestErrorsOfTheServersStore(t *testing.T) {
	d := start(t, server.Config{Opened: refusing{errors.New("dial tcp 10.0.0.1: secret")}})
	s := open(t, d.url(), remote.Options{})
	_, err := bind(t, s, limit("9/1h")).Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
	if err == nil || !strings.Contains(err.Error(), "no decision could be made") || strings.Contains(err.Error(), "secret") || s.Counts().Failures != 1 {
		t.Errorf("got %v, and %d failures", err, s.Counts().Failures)
	}
}

func TestPrefixesSeparate(t *testing.T) {
	d := start(t, server.Config{})
	spec := store.Spec{Limit: algorithm.MustParseLimit("9/1h"), Name: "login"}
	var all []store.Binding
	for _, url := range []string{d.url(), d.url() + "?prefix=a", d.url() + "?prefix=b"} {
		all = append(all, bind(t, open(t, url, remote.Options{}), spec))
	}
	all = append(all, bind(t, open(t, d.url(), remote.Options{}), limit("9/1h"))) // without a name
	for i, b := range all {
		if v := take(t, b, "k"); v.Remaining != 8 {
			t.Errorf("%d: %+v", i, v)
		}
	}
	again := bind(t, open(t, d.url()+"?prefix=b", remote.Options{Prefix: "a"}), spec) // what the program says goes before
	if v := take(t, again, "k"); v.Remaining != 7 {
		t.Errorf("prefix a, another time: %+v", v)
	}
}

// A prefix is part of the name, and must not make one name of limits that have none.
func TestLimitsWithoutANameStayApartUnderAPrefix(t *testing.T) {
	d := start(t, server.Config{})
	s := open(t, d.url()+"?prefix=a", remote.Options{})
	for _, text := range []string{"9/1h", "fixed-window 9/1h", "8/1h"} {
		b := bind(t, s, limit(text))
		if v := take(t, b, "k"); v.Remaining != limit(text).Limit.Capacity()-1 {
			t.Errorf("%s: %+v", text, v)
		}
		if _, err := b.Do(t.Context(), "k", algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: 1, Life: 1e9}, store.OwnClock); !errors.Is(err, store.ErrUnnamed) {
			t.Errorf("%s: a reservation: %v", text, err)
		}
		part := store.Part{Store: s, Binding: b, Limit: limit(text).Limit, Key: "k", Cost: 1, ID: 1, Life: 1e9}
		if _, err := s.TakeAll(t.Context(), []store.Part{part}, store.OwnClock, nil); !errors.Is(err, store.ErrUnnamed) {
			t.Errorf("%s: a reserved part: %v", text, err)
		}
		if v := take(t, b, "k"); v.Remaining != limit(text).Limit.Capacity()-2 {
			t.Errorf("%s, another time: %+v", text, v)
		}
	}
}

// A part that is reserved again, by who had no answer, is granted what it has.
func TestPartsAreReservedOnce(t *testing.T) {
	s := open(t, start(t, server.Config{}).url(), remote.Options{})
	named := store.Spec{Limit: limit("9/1h").Limit, Name: "n"}
	parts := []store.Part{
		{Store: s, Binding: bind(t, s, named), Limit: named.Limit, Name: "n", Key: "k", Cost: 4, ID: 77, Life: 1e9},
		{Store: s, Binding: bind(t, s, limit("fixed-window 9/1h")), Limit: limit("fixed-window 9/1h").Limit, Key: "k", Cost: 1},
	}
	for i, cost := range []int64{4, 2} {
		parts[0].Cost = cost
		outcomes, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil)
		if err != nil || outcomes[0].Granted != 4 || outcomes[0].Remaining != 5 || outcomes[1].Granted != 1 || outcomes[1].Remaining != int64(8-i) {
			t.Errorf("%d: %+v, %v", i, outcomes, err)
		}
	}
}

func TestLongKeysAndNamesAreRefusedHere(t *testing.T) {
	d := start(t, server.Config{})
	s := open(t, d.url(), remote.Options{})
	b := bind(t, s, limit("9/1h"))
	for length, ok := range map[int]bool{64 << 10: true, 64<<10 + 1: false, 2 << 20: false} {
		key := strings.Repeat("k", length)
		_, err := b.Do(t.Context(), key, algorithm.Op{Cost: 1}, store.OwnClock)
		_, many := b.(store.Batcher).TakeMany(t.Context(), []store.KeyCost{{Key: key, Cost: 1}}, store.OwnClock, nil)
		_, joint := s.TakeAll(t.Context(), []store.Part{{Binding: b, Limit: limit("9/1h").Limit, Key: key, Cost: 1}}, store.OwnClock, nil)
		if (err == nil) != ok || (many == nil) != ok || (joint == nil) != ok {
			t.Errorf("a key of %d bytes: %v, %v, %v", length, err, many, joint)
		}
		named := store.Spec{Limit: limit("9/1h").Limit, Name: key}
		if _, err := s.Bind(named); (err == nil) != ok {
			t.Errorf("a name of %d bytes: %v", length, err)
		}
	}
	if v := take(t, b, "short"); v.Remaining != 8 {
		t.Errorf("after that: %+v", v)
	}
}

// After a restart of the server its clients find it again by themselves.
func TestServerThatRestartsIsFoundAgain(t *testing.T) {
	d := start(t, server.Config{})
	b := bind(t, open(t, d.url(), remote.Options{Timeout: patience}), limit("100/1h"))
	for range 5 {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		d.restart(t)
		eventually(func() bool {
			_, err := b.Do(t.Context(), "k", algorithm.Op{}, store.OwnClock)
			return err == nil
		})
	}
}

// eventually returns when a condition holds. Only the test binary has a deadline.
func eventually(f func() bool) {
	for !f() {
		time.Sleep(time.Millisecond)
	}
}

// Reservations and waiting, of limiters over a server.
func TestLimitersOverAServer(t *testing.T) {
	d := start(t, server.Config{})
	s := open(t, d.url(), remote.Options{})
	l, err := weir.New(weir.MustParseLimit("2/1h"), weir.WithStore(s), weir.WithName("jobs"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Reserve(t.Context(), "k", 2)
	if err != nil || !r.Allowed || r.Remaining != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := r.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Peek(t.Context(), "k"); err != nil || d.Remaining != 2 {
		t.Errorf("after Cancel: %+v, %v", d, err)
	}
	queue, err := weir.New(weir.MustParseLimit("leaky-queue 1000/1s queue=5"), weir.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := queue.Wait(t.Context(), "k", 1); err != nil {
			t.Error(err)
		}
	}
	other, err := weir.New(weir.MustParseLimit("1/1h"), weir.WithStore(s))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		all, each, err := weir.TakeAll(t.Context(), weir.Charge{Limiter: l, Key: "u", Cost: 1}, weir.Charge{Limiter: other, Key: "u", Cost: 1})
		if err != nil || all.Allowed != want || each[0].Remaining != 1 {
			t.Errorf("request %d of two limits: %+v, %+v, %v", i, all, each, err)
		}
	}
}

func TestManyPartsAreTakenInTurn(t *testing.T) {
	d := start(t, server.Config{})
	s := open(t, d.url(), remote.Options{Timeout: patience})
	var parts []store.Part
	for range 150 {
		parts = append(parts, store.Part{Binding: bind(t, s, limit("1/1h")), Limit: limit("1/1h").Limit, Key: strings.Repeat("k", len(parts)+1), Cost: 1})
	}
	verdicts, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil)
	if err != nil || len(verdicts) != len(parts) || verdicts[149].Granted != 1 {
		t.Fatalf("%d verdicts, %v", len(verdicts), err)
	}
	if verdicts, err = s.TakeAll(t.Context(), parts, store.OwnClock, nil); err != nil || verdicts[0].Granted != -1 {
		t.Errorf("again: %v, %v", verdicts, err)
	}
	if verdicts, err = s.TakeAll(t.Context(), nil, store.OwnClock, nil); err != nil || len(verdicts) != 0 {
		t.Errorf("no parts: %v, %v", verdicts, err)
	}
}
