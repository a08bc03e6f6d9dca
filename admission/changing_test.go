package admission_test

import (
	"context"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// changes make a limiter's limit another one, again and again.
type changes struct {
	t       *testing.T
	limiter *weir.Limiter
	n       int
}

func (c *changes) make(times int) {
	for range times {
		c.n++
		texts := []string{"leaky-queue 1/24h queue=9", "leaky-queue 1/24h queue=999", "fixed-window 500/24h"}
		if err := c.limiter.SetLimit(weir.MustParseLimit(texts[c.n%len(texts)])); err != nil {
			c.t.Fatal(err)
		}
	}
}

// A changingContext changes the limit when it is asked whether it has ended, which is just before the limiter decides.
type changingContext struct {
	context.Context

	c     *changes
	times int
}

func (c changingContext) Err() error {
	c.c.make(c.times)
	return nil
}

// A changingStore changes the limit while it decides.
type changingStore struct {
	store.Store

	c     *changes
	times *int
}

func (s changingStore) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return changingBinding{b, s}, err
}

type changingBinding struct {
	store.Binding

	s changingStore
}

func (b changingBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	b.s.c.make(*b.s.times)
	return b.Binding.Do(ctx, key, op, now)
}

// What is told of a limit that changes meanwhile is of one limit: its name, and no more than it has. What was told stays told.
func TestALimitThatChangesMeanwhile(t *testing.T) {
	for before := range 4 {
		for while := range 4 {
			c, times := &changes{t: t}, 0
			c.limiter = limiter(t, "leaky-queue 1/24h queue=9", weir.WithName("n"), weir.WithStore(changingStore{memory.New(memory.Options{}), c, &times}))
			g := gate(t, c.limiter, admission.Options{})
			times = while
			for range 9 {
				r := request("/")
				by := c.limiter.Limit()
				a := g.Admit(r.WithContext(changingContext{r.Context(), c, before}))
				told := ""
				for range 2 {
					for s := range a.Each() {
						if s.Decision.Remaining > s.Limit.Capacity() || s.Decision.Limit != s.Limit.Capacity() || s.Name != s.Limit.String() || told != "" && told != s.Name {
							t.Errorf("%d and %d changes: %s, before %q, %v: %+v", before, while, s.Name, told, s.Limit, s.Decision)
						}
						if told = s.Name; while == 0 && s.Limit != by {
							t.Errorf("%d changes before: %v is told, decided by %v", before, s.Limit, by)
						}
					}
					c.make(1)
				}
				if told == "" {
					t.Error("nothing is told")
				}
			}
		}
	}
}
