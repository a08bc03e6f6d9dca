package remote

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A binding is a limit under a name. It implements [store.Binding], [store.Batcher] and [store.Stamper].
type binding struct {
	store    *Store
	limit    algorithm.Limit
	text     string
	name     string
	accounts bool // and reservations with them
	debt     bool
}

// words are the commands of the operations.
var words = map[algorithm.Kind]string{
	algorithm.Take: "WEIR.TAKE", algorithm.TakeUpTo: "WEIR.TAKEUPTO", algorithm.Refund: "WEIR.REFUND",
	algorithm.Reset: "WEIR.RESET", algorithm.Cancel: "WEIR.CANCEL", algorithm.Renew: "WEIR.RENEW",
	algorithm.Reserve: "WEIR.RESERVE", algorithm.Commit: "WEIR.COMMIT",
}

// tellsUnits reports whether the reply to an operation says how many units it was about.
func tellsUnits(kind algorithm.Kind) bool {
	return kind != algorithm.Take && kind != algorithm.Refund && kind != algorithm.Reset
}

// Do implements [store.Binding].
func (b *binding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, _, err := b.do(ctx, key, op, now, op.Kind == algorithm.Reset) // a RESET without TIME has no verdict
	return v, err
}

// DoStamped implements [store.Stamper].
func (b *binding) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, int64, error) {
	return b.do(ctx, key, op, now, true)
}

func (b *binding) do(ctx context.Context, key string, op algorithm.Op, now int64, stamped bool) (v algorithm.Verdict, at int64, err error) {
	if err := b.store.check(ctx, now, key); err != nil {
		return v, 0, err
	}
	if op.Kind >= algorithm.Reserve && !b.accounts {
		return v, 0, store.ErrUnnamed
	}
	fields, err := b.store.ask(ctx, words[op.Kind], b.command(key, op, now, stamped))
	if err != nil {
		return v, 0, err
	}
	r, err := b.store.read(fields, tellsUnits(op.Kind), stamped)
	if err != nil {
		return v, 0, err
	}
	if op.Kind == algorithm.Take {
		r.granted = op.Cost
	}
	return r.verdict(), r.at, nil
}

// command is that of an operation. The client may send it later than its caller waits, so that the key is copied.
func (b *binding) command(key string, op algorithm.Op, now int64, stamped bool) rueidis.Completed {
	c := make([]string, 0, 16)
	c = append(c, words[op.Kind], strings.Clone(key), b.text, "NS")
	if op.Kind != algorithm.Reset && op.Cost != 1 {
		c = append(c, "COST", decimal(op.Cost))
	}
	if op.Kind == algorithm.Cancel || op.Kind == algorithm.Renew {
		c = append(c, "END", decimal(op.End))
	}
	c = reservation(c, op.Kind, op.ID, op.Life)
	if op.Late {
		c = append(c, "LATE")
	}
	if b.debt {
		c = append(c, "DEBT")
	}
	if stamped {
		c = append(c, "TIME")
	}
	return b.store.command(circumstances(c, b.name, now)...)
}

// reservation adds what makes a reservation, or settles one.
func reservation(c []string, kind algorithm.Kind, id, life int64) []string {
	if kind == algorithm.Reserve || kind == algorithm.Commit {
		c = append(c, "ID", decimal(id))
	}
	if kind == algorithm.Reserve {
		c = append(c, "LIFE", decimal(life))
	}
	return c
}

// circumstances adds a name and a time.
func circumstances(c []string, name string, now int64) []string {
	if name != "" {
		c = append(c, "NAME", name)
	}
	if now != store.OwnClock {
		c = append(c, "AT", decimal(now))
	}
	return c
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// check refuses what the server would refuse, or what would make it end the connection; and what nobody waits for any more.
func (s *Store) check(ctx context.Context, now int64, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if now != store.OwnClock && !s.options.TrustClientTime {
		return store.ErrClientTime
	}
	if most := s.server.Load().maxKey; len(key) > most {
		return fmt.Errorf("remote: key is %d bytes long; accepted: at most %d; %w", len(key), most, store.ErrNothingDone)
	}
	return nil
}

// mostAtOnce is how many commands are sent before the first reply is waited for.
const mostAtOnce = 512

// TakeMany implements [store.Batcher]: it sends all requests at once.
func (b *binding) TakeMany(ctx context.Context, requests []store.KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	for len(requests) > 0 {
		n := min(mostAtOnce, len(requests))
		var err error
		if decisions, err = b.takeSome(ctx, requests[:n], now, decisions); err != nil {
			return decisions, err
		}
		requests = requests[n:]
	}
	return decisions, nil
}

func (b *binding) takeSome(ctx context.Context, requests []store.KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	commands := make(rueidis.Commands, 0, len(requests))
	for _, r := range requests {
		if err := b.store.check(ctx, now, r.Key); err != nil {
			return decisions, err
		}
		commands = append(commands, b.command(r.Key, algorithm.Op{Cost: r.Cost}, now, false))
	}
	client := b.store.client.Load()
	if client == nil {
		return decisions, b.store.fail(words[algorithm.Take], errUnconnected)
	}
	for i, result := range client.DoMulti(ctx, commands...) {
		fields, err := b.store.numbers(words[algorithm.Take], result)
		if err != nil {
			return decisions, err
		}
		r, err := b.store.read(fields, false, false)
		if err != nil {
			return decisions, err
		}
		r.granted = requests[i].Cost
		decisions = append(decisions, r.verdict().Decision(b.limit.Capacity()))
	}
	return decisions, nil
}

// ask sends a command and returns the numbers in its reply.
func (s *Store) ask(ctx context.Context, verb string, c rueidis.Completed) ([]int64, error) {
	return s.numbers(verb, s.do(ctx, c))
}

// do sends a command.
func (s *Store) do(ctx context.Context, c rueidis.Completed) rueidis.RedisResult {
	client := s.client.Load()
	if client == nil {
		return rueidis.NewErrorResult(errUnconnected)
	}
	return client.Do(ctx, c)
}

func (s *Store) command(words ...string) rueidis.Completed {
	builder := rueidis.Builder{}
	if client := s.client.Load(); client != nil {
		builder = client.B()
	}
	return builder.Arbitrary(words...).Build()
}

// wait reads a number of nanoseconds.
func wait(n int64) time.Duration {
	if n < 0 {
		return algorithm.Never
	}
	return time.Duration(n)
}
