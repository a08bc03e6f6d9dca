package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// check has the policies decide on a request.
func (s *Server) check(w http.ResponseWriter, r *http.Request) *Problem {
	return s.asking(w, r, func(ctx context.Context, q *checks.Request) (any, error) {
		if q.OnError != nil {
			ctx = store.WithOnError(ctx, *q.OnError)
		}
		began := time.Now()
		d, err := s.opts.Policies.Check(ctx, &q.Request)
		s.decisions.Since(latency.Check, began)
		if err != nil {
			return nil, err
		}
		if d.Err != nil {
			s.without(d.Err, d.Decision)
		}
		s.counts.verdict(d.Allowed)
		return checkAnswerOf(d), nil
	})
}

// explain has the policies say how they would decide on a request, and why.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) *Problem {
	return s.asking(w, r, func(ctx context.Context, q *checks.Request) (any, error) {
		if q.OnError != nil {
			ctx = store.WithOnError(ctx, *q.OnError)
		}
		return s.opts.Policies.Explain(ctx, &q.Request)
	})
}

// asking reads a request, asks the policies, and answers.
func (s *Server) asking(w http.ResponseWriter, r *http.Request, ask func(context.Context, *checks.Request) (any, error)) *Problem {
	b := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	if p := readBody(w, r, b); p != nil {
		return p
	}
	q, p := decodeCheck(b.Bytes())
	if p != nil {
		return p
	}
	if rightOf(r.URL.Path) == access.Check {
		s.restrict(r, &q.Request)
	}
	ctx, cancel := s.within(r.Context())
	defer cancel()
	answer, err := ask(ctx, q)
	if err != nil {
		return s.checkProblem(err)
	}
	b.Reset()
	return writeJSON(w, b, answer)
}

// checkProblem tells the client of what it can mend, and the log of everything else.
func (s *Server) checkProblem(err error) *Problem {
	if errors.Is(err, policy.ErrForbidden) {
		return &Problem{Status: http.StatusForbidden, Detail: "the user does not have the right check for a policy that matches the request"}
	}
	if request, ok := errors.AsType[*policy.RequestError](err); ok {
		return refuse(request.Field, request.Value, request.Accept)
	}
	return s.undecided(err)
}

// A checkAnswer is a policy.Decision as it is written.
type checkAnswer struct {
	Allowed bool  `json:"allowed"`
	Limit   int64 `json:"limit"`
	standing
	Denied []string      `json:"denied"`
	Token  string        `json:"token,omitempty"`
	Failed bool          `json:"failed"`
	Local  bool          `json:"local,omitempty"`
	Limits []limitAnswer `json:"limits"`
}

// A limitAnswer is what stands for one limit.
type limitAnswer struct {
	Policy   string `json:"policy"`
	Plan     string `json:"plan,omitempty"`
	Limit    string `json:"limit"` // its text
	Role     string `json:"role"`
	Key      string `json:"key"`
	Cost     int64  `json:"cost"`
	Failed   bool   `json:"failed,omitempty"`
	Local    bool   `json:"local,omitempty"`
	Allowed  bool   `json:"allowed"`
	Capacity int64  `json:"capacity"`
	standing
}

// standing is what a decision says besides.
type standing struct {
	Remaining  int64 `json:"remaining"`
	RetryAfter int64 `json:"retry_after_us"`
	ResetAfter int64 `json:"reset_after_us"`
	Delay      int64 `json:"delay_us"`
}

func checkAnswerOf(d policy.Decision) checkAnswer {
	a := checkAnswer{
		Allowed: d.Allowed, Limit: d.Limit, standing: standingOf(d.Decision),
		Denied: d.Denied, Token: d.Token, Failed: d.Failed, Local: d.Local, Limits: make([]limitAnswer, len(d.Each)),
	}
	if a.Denied == nil {
		a.Denied = []string{}
	}
	for i, l := range d.Each {
		a.Limits[i] = limitAnswer{
			Policy: l.Policy, Plan: l.Plan, Limit: checks.LimitText(l), Role: l.Role.String(), Key: l.MaskedKey(), Cost: l.Cost, Failed: l.Failed, Local: l.Local,
			Allowed: l.Allowed, Capacity: l.Decision.Limit, standing: standingOf(l.Decision),
		}
	}
	return a
}

func standingOf(d weir.Decision) standing {
	return standing{d.Remaining, microseconds(d.RetryAfter), microseconds(d.ResetAfter), microseconds(d.Delay)}
}

// writeJSON writes an answer of some size.
func writeJSON(w http.ResponseWriter, b *bytes.Buffer, answer any) *Problem {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(answer); err != nil { // of texts and numbers: can't be
		return &Problem{Status: http.StatusInternalServerError, Detail: "the answer could not be written"}
	}
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(b.Bytes())
	return nil
}
