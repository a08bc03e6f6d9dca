package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/policy"
)

// A settled says that it is done.
type settled struct {
	Settled bool   `json:"settled"` // false if there is more to come, with the new token
	Token   string `json:"token,omitempty"`
}

func (s *Server) settle(w http.ResponseWriter, r *http.Request, op checks.Settlement) *Problem {
	b := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	if p := readBody(w, r, b); p != nil {
		return p
	}
	q, p := decodeSettlement(b.Bytes(), op)
	if p != nil {
		return p
	}
	ctx, cancel := s.within(r.Context())
	defer cancel()
	began := time.Now()
	next, err := op.Do(ctx, s.opts.Policies, q.token, q.cost, q.late)
	s.decisions.Since(latency.Settle, began)
	if err != nil {
		p := s.settleProblem(err, q.token)
		p.Token = next
		return p
	}
	b.Reset()
	return writeJSON(w, b, settled{next == "", next})
}

const tokenAccepted = "the token of a check or a renewal, signed with a key that this server has (--token-key)"

// A settleBody is what a settlement says.
type settleBody struct {
	token             string
	cost              int64
	late              bool // charge also if the reservation has expired
	hasToken, hasCost bool
	hasLate           bool
}

// decodeSettlement reads a body as strictly as decode does.
func decodeSettlement(body []byte, op checks.Settlement) (q settleBody, p *Problem) {
	example := `{"token":"..."}`
	if op.Costs {
		example = `{"token":"...","cost":3}`
	}
	m, p := object(body, example)
	if p != nil {
		return q, p
	}
	for m.next() {
		if p := q.set(unquote(m.name), m.value, op); p != nil {
			return q, p
		}
	}
	switch {
	case !q.hasToken:
		return q, refuse("token", "missing", tokenAccepted)
	case op.Costs && !q.hasCost:
		return q, refuse("cost", "missing", checks.CostAccepted)
	}
	return q, nil
}

func (q *settleBody) set(name string, value []byte, op checks.Settlement) (p *Problem) {
	switch {
	case name == "token" && q.hasToken, name == "cost" && q.hasCost, name == "late" && q.hasLate:
		return refuse(name, "given twice", "once")
	case name == "token":
		q.token, p = text(name, value, tokenAccepted)
		q.hasToken = true
	case name == "cost" && op.Costs:
		q.cost, p = whole(name, value, 0, checks.CostAccepted)
		q.hasCost = true
	case name == "late" && op.Costs:
		q.late, p = boolean(name, value)
		q.hasLate = true
	case op.Costs:
		return unknownField(name, "token, cost, late")
	default:
		return unknownField(name, "token")
	}
	return p
}

// settleProblem tells the client what is wrong with its token.
func (s *Server) settleProblem(err error, token string) *Problem {
	switch {
	case errors.Is(err, policy.ErrToken):
		return refuse("token", token, tokenAccepted)
	case errors.Is(err, policy.ErrSettled):
		return &Problem{Status: http.StatusConflict, Detail: strings.TrimPrefix(err.Error(), "weir: ")}
	}
	return s.checkProblem(err)
}
