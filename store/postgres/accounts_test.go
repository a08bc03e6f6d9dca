package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// of binds a limit under a name.
func of(t testing.TB, s store.Store, name, text string) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Name: name, Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// changing are limits that one name has in turn.
var changing = []string{
	"10/1s", "7/1s burst=9", "3/1s burst=5", "leaky-queue 4/1s queue=3", "refill-bucket 5/10s burst=12", "fixed-window 5/10s", "fixed-window 12/10s",
	"quota-reset 5/10s", "sliding-log 9/10s", "sliding-window 9/10s", "sliding-buckets 8/10s cells=7", "hybrid 6/6s", "exponential 10/10s",
	"10/day tz=Europe/Berlin", "12/month anchor=31", "concurrent 6 lease=2s",
}

// A ledger is what one name should have of one key.
type ledger struct {
	*rand.Rand
	account algorithm.Account
	now     int64 // ns
	ends    []int64
	ids     int64
}

// op is anything that can be asked, mostly a Take.
func (l *ledger) op() algorithm.Op {
	op := algorithm.Op{Cost: 1 + l.Int64N(4)}
	switch l.IntN(12) {
	case 0:
		op.Cost = 0
	case 1:
		op.Kind = algorithm.TakeUpTo
	case 2:
		op.Kind = algorithm.Refund
	case 3, 4:
		op.Kind, op.ID, op.Life = algorithm.Reserve, l.ids, 1+l.Int64N(int64(5*time.Second))
		l.ids++
	case 5, 6:
		op.Kind, op.ID, op.Cost = algorithm.Commit, l.ids-1-l.Int64N(4), l.Int64N(8)
	case 7, 8:
		op.Kind, op.End = []algorithm.Kind{algorithm.Cancel, algorithm.Renew}[l.IntN(2)], l.ends[l.IntN(len(l.ends))]
	case 9:
		if l.IntN(4) == 0 {
			op = algorithm.Op{Kind: algorithm.Reset}
		}
	}
	return op
}

// move moves the time on, and sometimes back.
func (l *ledger) move() {
	switch l.IntN(10) {
	case 0:
		l.now -= l.Int64N(int64(3 * time.Second))
	case 1:
		l.now += l.Int64N(int64(30 * time.Second))
	case 2:
		l.now += l.Int64N(int64(20 * 24 * time.Hour))
	case 3, 4, 5:
		l.now += l.Int64N(int64(time.Second))
	}
}

// expect carries out the operation on the account, in whole µs, as the store does.
func (l *ledger) expect(p *algorithm.Program, op algorithm.Op) algorithm.Verdict {
	op.End, op.Life = store.Microseconds(op.End), -store.Microseconds(-op.Life)
	l.account.State = slices.Clone(l.account.State)
	a, r := l.account.Apply(p, op, store.Microseconds(l.now))
	l.account = a
	v := r.Verdict()
	l.ends = append(l.ends, l.now+int64(v.Reset))[max(0, len(l.ends)-4):]
	return v
}

// Whatever is asked, and however the limit of the name changes, from two stores: the verdicts and the rows are those of an Account.
func TestAccountsAreThoseOfTheProgram(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), trusted(t)
	stores := []*postgres.Store{open(t, url, o), open(t, url, o)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	walks, steps := 40, 150
	if testing.Short() {
		walks, steps = 10, 60
	}
	for n := range walks {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			l := &ledger{Rand: rand.New(rand.NewPCG(seed, uint64(n))), now: noon, ends: []int64{noon}, ids: 1}
			name, key := fmt.Sprint("name ", n), fmt.Sprint("key ", n)
			text := changing[l.IntN(len(changing))]
			var asked []string
			for range steps {
				if l.IntN(8) == 0 {
					text = changing[l.IntN(len(changing))]
				}
				l.move()
				b, op := of(t, stores[l.IntN(2)], name, text), l.op()
				asked = append(asked, fmt.Sprintf("%s %+v at %d", text, op, l.now))
				got, want := do(t, b, key, op, l.now), l.expect(b.(store.Inspector).Program(), op)
				if got != want {
					t.Fatalf("%+v, want %+v, after\n%s", got, want, strings.Join(asked, "\n"))
				}
			}
			if l.account.Life(store.Microseconds(l.now)) <= 0 {
				return
			}
			row := query[string](t, url, `SELECT head || ' ' || words::text FROM `+o.Table+` WHERE name = 'weir:1:{key%20'||$1||'}:name%20'||$1`, fmt.Sprint(n))
			want := strings.NewReplacer("[", "{", "]", "}", " ", ",").Replace(fmt.Sprint(l.account.State))
			if want = l.account.Head() + " " + want; row != want {
				t.Errorf("the row has %s, want %s", row, want)
			}
		})
	}
}

// Pitfall S18: 10 of 10 are used; the limit goes to 20, to 10, and to 20 again. The raise is worth 10 units, once, from whichever store.
func TestS18LimitChange(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), trusted(t)
	one, other := open(t, url, o), open(t, url, o)
	for _, form := range []string{
		"%d/1h", "gcra %d/1h", "fixed-window %d/1h", "quota-reset %d/1h", "refill-bucket %d/1h", "sliding-log %d/1h", "sliding-window %d/1h",
		"sliding-buckets %d/1h", "hybrid %d/1h", "exponential %d/1h", "%d/day", "concurrent %d lease=1h",
	} {
		ten, twenty := fmt.Sprintf(form, 10), fmt.Sprintf(form, 20)
		for i, step := range []struct {
			text                     string
			cost, granted, remaining int64
		}{
			{ten, 10, 10, 0}, {twenty, 11, -1, 10}, {twenty, 1, 1, 9}, {ten, 1, -1, 0}, {twenty, 10, -1, 9}, {twenty, 9, 9, 0},
			{ten, 1, -1, 0}, {twenty, 1, -1, 0}, {ten, 1, -1, 0},
		} {
			s := one
			if i%2 == 1 {
				s = other
			}
			if v := take(t, of(t, s, form, step.text), "k", step.cost, noon); v.Granted != step.granted || v.Remaining != step.remaining {
				t.Errorf("step %d, %s: %+v, want %+v", i, step.text, v, step)
			}
		}
	}
}

// Pitfall S18 while a change spreads: some processes have the one limit, some the other, at one time. No more passes than the larger lets.
func TestS18TwoLimitsAtOnce(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), trusted(t)
	for n, pair := range [][]string{
		{"40/1h", "30/1h"}, {"40/1h", "fixed-window 25/1h"}, {"sliding-log 30/1h", "40/1h"}, {"40/month", "concurrent 20 lease=1h"}, {"40/day", "10/day"},
	} {
		var granted atomic.Int64
		var wg sync.WaitGroup
		most := int64(40)
		for _, text := range pair {
			b := of(t, open(t, url, o), fmt.Sprint(n), text)
			for range 60 {
				wg.Go(func() { granted.Add(max(0, take(t, b, "k", 1, noon).Granted)) })
			}
		}
		wg.Wait()
		for _, text := range pair {
			rest := do(t, of(t, open(t, url, o), fmt.Sprint(n), text), "k", algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 100}, noon)
			granted.Add(max(0, rest.Granted))
		}
		if granted.Load() != most {
			t.Errorf("%q: %d were admitted, want %d", pair, granted.Load(), most)
		}
	}
}

// A head that somebody else has written is an error that changes nothing, until the key is reset.
func TestForeignHeads(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	for n, text := range []string{"10/1h", "sliding-log 10/1h"} {
		key := fmt.Sprint("k", n)
		for _, name := range []string{"", "n"} {
			heads := []string{"x", text + ";", text + ";over=x", "9/1h;hold=1", text + strings.Repeat(";hold=1,1,1,1,1,1", 2000), "é", strings.Repeat("x", 1<<20)}
			if name == "" {
				heads = append(heads, text, "10/1h")
			} else {
				heads = append(heads, "", "hybrid 6/6s")
			}
			b := of(t, s, name, text)
			for _, head := range heads {
				take(t, b, key, 1, store.OwnClock)
				run(t, url, fmt.Sprintf(`UPDATE %s SET head = '%s' WHERE name LIKE '%%{%s}:%s%%'`, o.Table, head, key, name))
				for _, op := range []algorithm.Op{{Cost: 1}, {}, {Cost: 11}, {Kind: algorithm.Refund, Cost: 1}, {Kind: algorithm.Renew, Cost: 1}} {
					if v, err := b.Do(t.Context(), key, op, store.OwnClock); !errors.Is(err, store.ErrNothingDone) {
						t.Errorf("%s under %q, %.40s, %+v: %+v, %v", text, name, head, op, v, err)
					}
				}
				left := query[string](t, url, `SELECT head FROM `+o.Table+` WHERE name LIKE '%{'||$1||'}:'||$2||'%'`, key, name)
				if left != head {
					t.Errorf("%.40q became %.40q", head, left)
				}
				do(t, b, key, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
				if v := take(t, b, key, 1, store.OwnClock); v.Remaining != 9 {
					t.Errorf("after %.40s and a reset: %+v", head, v)
				}
				do(t, b, key, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
			}
		}
	}
}

// A denial writes nothing, but once where the wait is shorter under a limit that changed.
func TestDenialsOfAccountsWriteOnce(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	versions := map[string]bool{}
	for _, text := range []string{
		"9/1h", "7/1h burst=3", "fixed-window 6/1000h", "quota-reset 4/1h", "refill-bucket 8/1h", "sliding-log 5/1h", "sliding-window 3/1000h", "concurrent 3 lease=1h",
		"5/year anchor=06-01",
	} {
		b := of(t, s, "n", text)
		do(t, b, "k", algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 100}, store.OwnClock)
		before := len(versions)
		for i := range 5 {
			v := take(t, b, "k", 2, store.OwnClock)
			take(t, b, "k", 0, store.OwnClock)
			if v.Granted >= 0 {
				t.Errorf("%s: %+v", text, v)
			}
			versions[query[string](t, url, `SELECT xmin::text || ' ' || xmax::text || ' ' || ctid::text FROM `+o.Table)] = true
			if i == 0 && query[string](t, url, `SELECT head FROM `+o.Table) != b.(store.Inspector).Program().Head() && before == 0 {
				t.Errorf("%s: the row is not of this limit", text)
			}
		}
		if now := len(versions); now > before+1 {
			t.Errorf("%s: %d more versions of the row with 5 denials, want at most 1", text, now-before)
		}
	}
}

// A row lives as long as a reservation in it, also when all else is over.
func TestRowsOfReservations(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	life := func() time.Duration {
		s := query[float64](t, url, `SELECT extract(epoch FROM expires - clock_timestamp())::float8 FROM `+o.Table)
		return time.Duration(s * float64(time.Second))
	}
	b := of(t, open(t, url, o), "n", "1000/1s")
	do(t, b, "k", algorithm.Op{Kind: algorithm.Reserve, ID: 7, Cost: 5, Life: int64(time.Hour)}, store.OwnClock)
	if d := life(); d < 59*time.Minute || d > time.Hour {
		t.Errorf("the row lives for %v", d)
	}
	take(t, b, "k", 5, store.OwnClock)
	if d := life(); d < 59*time.Minute || d > time.Hour {
		t.Errorf("after a take the row lives for %v", d)
	}
	if v := do(t, b, "k", algorithm.Op{Kind: algorithm.Commit, ID: 7, Cost: 900}, store.OwnClock); v.Granted != 900 {
		t.Errorf("%+v", v)
	}
	if d := life(); d > 2*time.Second {
		t.Errorf("when it is settled, the row lives for %v", d)
	}
}
