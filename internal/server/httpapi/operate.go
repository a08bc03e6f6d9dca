package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// A request is a call, and its fields that errors show.
type request struct {
	operation.Call

	at time.Time // of the call, if at is given
}

// operate serves an operation: it decodes the body, runs the call, and encodes the result.
func (s *Server) operate(o *operation.Operation) func(http.ResponseWriter, *http.Request) *Problem {
	return func(w http.ResponseWriter, r *http.Request) *Problem {
		b, ok := bodies.Get().(*bytes.Buffer)
		if !ok {
			b = new(bytes.Buffer)
		}
		defer bodies.Put(b)
		b.Reset()
		if p := readBody(w, r, b); p != nil {
			return p
		}
		q := new(request)
		q.Begin(o)
		if p := s.decode(q, b.Bytes()); p != nil {
			return p
		}
		user := userOf(r)
		if q.Form == operation.Request {
			s.opts.Restrict(&q.Request.Request, user)
		} else if right := s.opts.Missing(&q.Call, user); q.Form == operation.OneLimit && right != access.None {
			return &Problem{Status: http.StatusForbidden, Detail: "the user does not have the right " + right.String() + " for this name and key"}
		}
		var counts operation.Counts
		defer func() { s.counts.Add(counts) }()
		if q.Err = s.bind(q); q.Err == nil {
			s.do(r.Context(), &q.Call)
		}
		if q.Audit != "" && s.opts.Audit != nil {
			s.opts.Record(&q.Call, s.name, r.RemoteAddr, user)
		}
		if q.Err != nil {
			return s.problem(q.Err, q, &counts)
		}
		s.opts.Count(&q.Call, &counts, s.name)
		b.Reset()
		switch q.Form {
		case operation.Request:
			return writeJSON(w, b, checkAnswerOf(q.Checked))
		case operation.Settlement:
			return writeJSON(w, b, settled{q.Next == "", q.Next})
		}
		b.Write(appendAnswer(b.AvailableBuffer(), &q.Call))
		w.Header()["Content-Type"] = jsonType
		_, _ = w.Write(b.Bytes())
		return nil
	}
}

// bind binds the limit of a call that has one.
func (s *Server) bind(q *request) (err error) {
	if q.Form != operation.OneLimit {
		return nil
	}
	if q.Bound, err = s.opts.Limiters.Bind([]byte(q.Name), []byte(q.Text), false); err != nil {
		return err
	}
	if q.Given&operation.At != 0 && !q.Set(operation.At, q.at.UnixMicro(), time.Microsecond) {
		return store.ErrTime
	}
	return nil
}

func (s *Server) do(ctx context.Context, c *operation.Call) {
	ctx, cancel := s.opts.Within(ctx)
	defer cancel()
	defer s.decisions.Since(c.Label(), time.Now())
	s.opts.Do(ctx, c)
}

// problem returns the problem of an error: as much of the error as a client may see.
func (s *Server) problem(err error, q *request, counts *operation.Counts) *Problem {
	fault, shownErr := s.opts.FaultOf(err, counts, s.name)
	var p *Problem
	switch limit, request := (*weir.LimitError)(nil), (*policy.RequestError)(nil); {
	case errors.As(shownErr, &limit):
		p = refuse("limit", q.Text, limit.Field+": "+limit.Accept)
		p.Detail = "limit has " + limit.Field + " " + shown(limit.Value) + "; accepted: " + limit.Accept
	case errors.As(shownErr, &request):
		p = refuse(request.Field, request.Value, request.Accept)
	case fault == operation.BadTime:
		p = refuse("at_us", q.at.UTC().Format(time.RFC3339), atAccepted+", "+operation.TimeRange)
	case fault == operation.NoTime:
		p = refuse("at_us", q.at.UTC().Format(time.RFC3339), "no time of the client's: the store of this server decides by its own clock")
	case fault == operation.BadToken:
		p = refuse("token", q.Token, tokenAccepted)
	case fault == operation.Unnamed:
		p = refuse("name", "missing", "a name, under which reservations are kept")
	case fault == operation.Settled:
		p = &Problem{Status: http.StatusConflict, Detail: policy.ErrSettled.Error()[len("weir: "):]}
	case fault == operation.Forbidden:
		p = &Problem{Status: http.StatusForbidden, Detail: "the user does not have the right check for a policy that matches the request"}
	case fault == operation.Overloaded:
		p = &Problem{Status: http.StatusServiceUnavailable, Detail: store.ErrOverloaded.Error() + "; try again"}
	default:
		p = &Problem{Status: http.StatusServiceUnavailable, Detail: "no decision could be made; try again"}
	}
	p.Token = q.Next
	return p
}

// explain has the policies explain their decision on a request.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) *Problem {
	b := new(bytes.Buffer)
	if p := readBody(w, r, b); p != nil {
		return p
	}
	var q request
	if p := q.decodeCheck(b.Bytes()); p != nil {
		return p
	}
	ctx, cancel := s.opts.Within(r.Context())
	defer cancel()
	if q.Given&operation.OnError != 0 {
		ctx = store.WithOnError(ctx, q.OnError)
	}
	explanation, err := s.opts.Policies.Explain(ctx, &q.Request.Request)
	if err != nil {
		var counts operation.Counts
		defer func() { s.counts.Add(counts) }()
		return s.problem(err, &q, &counts)
	}
	b.Reset()
	return writeJSON(w, b, explanation)
}

// Decisions returns the durations of decisions, without the time to read the body and to send the
// response. The durations go on to be counted.
func (s *Server) Decisions() *latency.Decisions { return &s.decisions }

// Stats returns the counts so far. They are read one after another, not at one instant.
func (s *Server) Stats() operation.Stats {
	reasons := s.connections.guard.Counts()
	return operation.Stats{
		Connections: int64(s.connections.guard.Open()), Accepted: s.connections.accepted.Load(),
		Refused: reasons.Refused(), Cut: reasons.Cut(), Reasons: reasons, Counts: s.counts.Counts(),
	}
}
