package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/store"
)

// An operation is what a POST under /v1/ asks for.
type operation struct {
	name  string
	costs bool // takes a "cost"
	run   func(context.Context, *weir.Limiter, request) (answer, error)
	takes bool // the verdict is counted
	kind  latency.Operation
	falls bool // falls back when the store fails: takes an "on_store_error"
}

// An answer is a decision, and what else an operation answers with.
type answer struct {
	weir.Decision
	granted  int64
	granting bool // the answer says what was granted
}

var operations = []operation{
	{name: "take", costs: true, run: decided(runTake), takes: true, falls: true, kind: latency.Take},
	{name: "take-up-to", costs: true, run: runTakeUpTo, takes: true, falls: true, kind: latency.TakeUpTo},
	{name: "peek", run: decided(runPeek), falls: true, kind: latency.Peek},
	{name: "refund", costs: true, run: decided(runRefund), kind: latency.Refund},
	{name: "reset", run: decided(runReset), kind: latency.Reset},
}

func decided(run func(context.Context, *weir.Limiter, request) (weir.Decision, error)) func(context.Context, *weir.Limiter, request) (answer, error) {
	return func(ctx context.Context, l *weir.Limiter, q request) (a answer, err error) {
		a.Decision, err = run(ctx, l, q)
		return a, err
	}
}

func (op operation) fields() string {
	fields := "key, limit, name, at_us"
	if op.costs {
		fields = "key, limit, name, cost, at_us"
	}
	if op.falls {
		fields += ", on_store_error"
	}
	return fields
}

func runTakeUpTo(ctx context.Context, l *weir.Limiter, q request) (a answer, err error) {
	a.granting = true
	if q.timed {
		a.granted, a.Decision, err = l.TakeUpToAt(ctx, q.key, q.cost, q.at)
	} else {
		a.granted, a.Decision, err = l.TakeUpTo(ctx, q.key, q.cost)
	}
	return a, err
}

func runTake(ctx context.Context, l *weir.Limiter, q request) (weir.Decision, error) {
	if q.timed {
		return l.TakeAt(ctx, q.key, q.cost, q.at)
	}
	return l.Take(ctx, q.key, q.cost)
}

func runPeek(ctx context.Context, l *weir.Limiter, q request) (weir.Decision, error) {
	if q.timed {
		return l.PeekAt(ctx, q.key, q.at)
	}
	return l.Peek(ctx, q.key)
}

func runRefund(ctx context.Context, l *weir.Limiter, q request) (weir.Decision, error) {
	if q.timed {
		return l.RefundAt(ctx, q.key, q.cost, q.at)
	}
	return l.Refund(ctx, q.key, q.cost)
}

// runReset answers with what stands afterwards, which includes what others took in between.
func runReset(ctx context.Context, l *weir.Limiter, q request) (weir.Decision, error) {
	if err := l.Reset(ctx, q.key); err != nil {
		return weir.Decision{}, err
	}
	return runPeek(ctx, l, q)
}

// operate reads a request, has it decided, and answers.
func (s *Server) operate(w http.ResponseWriter, r *http.Request, op operation) *Problem {
	b := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	if p := readBody(w, r, b); p != nil {
		return p
	}
	q, p := decode(b.Bytes(), op, s.opts.TrustClientTime)
	if p != nil {
		return p
	}
	if p := s.forbids(r, rightOf(r.URL.Path), q.name, q.key); p != nil {
		return p
	}
	a, err := s.decide(r.Context(), op, q)
	s.audit(r, op, q, err)
	if err != nil {
		return s.problem(err, q)
	}
	if op.takes {
		s.counts.verdict(a.Allowed)
	}
	b.Reset()
	writeAnswer(w, b, a)
	return nil
}

func (s *Server) decide(ctx context.Context, op operation, q request) (answer, error) {
	l, err := s.opts.Limiters.Get(q.name, []byte(q.limit))
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	defer s.decisions.Since(op.kind, time.Now())
	on := s.opts.OnStoreError
	if q.seen&onErrorField != 0 {
		on = q.onError
	}
	if on == store.Deny || !op.falls {
		return op.run(ctx, l, q)
	}
	var failure error
	a, err := op.run(store.WithOnError(decide.WithCause(ctx, &failure), on), l, q)
	if err == nil && a.Failed {
		s.without(failure, a.Decision)
	}
	if _, share := errors.AsType[*weir.LimitError](err); share && q.seen&onErrorField == 0 {
		err = errors.New(err.Error()) // the client can't change a share that the limit does not have
	}
	return a, err
}

// problem tells the client of what it can mend, and the log of everything else.
func (s *Server) problem(err error, q request) *Problem {
	var limit *weir.LimitError
	switch {
	case errors.As(err, &limit):
		p := refuse("limit", q.limit, limit.Field+": "+limit.Accept)
		p.Detail = "limit has " + limit.Field + " " + shown(limit.Value) + "; accepted: " + limit.Accept
		return p
	case errors.Is(err, weir.ErrTime):
		return refuse("at_us", q.at.UTC().Format(time.RFC3339), atAccepted+", in the years 1866 to 2074")
	}
	if errors.Is(err, weir.ErrClientTime) {
		return refuse("at_us", q.at.UTC().Format(time.RFC3339), "no time of the client's: the store of this server decides by its own clock")
	}
	return s.undecided(err)
}
