package httpapi

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/server/checks"
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
	token, cost, p := decodeSettlement(b.Bytes(), op)
	if p != nil {
		return p
	}
	ctx, cancel := s.within(r.Context())
	defer cancel()
	next, err := op.Do(ctx, s.opts.Policies, token, cost)
	if err != nil {
		p := s.settleProblem(err, token)
		p.Token = next
		return p
	}
	b.Reset()
	return writeJSON(w, b, settled{next == "", next})
}

const tokenAccepted = "the token of a check or a renewal"

// decodeSettlement reads a body as strictly as decode does.
func decodeSettlement(body []byte, op checks.Settlement) (token string, cost int64, p *Problem) {
	example, fields := `{"token":"..."}`, "token"
	if op.Costs {
		example, fields = `{"token":"...","cost":3}`, "token, cost"
	}
	m, p := object(body, example)
	if p != nil {
		return "", 0, p
	}
	hasToken, hasCost := false, false
	for m.next() {
		switch name := unquote(m.name); {
		case name == "token" && !hasToken:
			hasToken = true
			token, p = text(name, m.value, tokenAccepted)
		case name == "cost" && op.Costs && !hasCost:
			hasCost = true
			cost, p = whole(name, m.value, 0, costAccepted)
		case name == "token" || name == "cost" && op.Costs:
			p = refuse(name, "given twice", "once")
		default:
			p = unknownField(name, fields)
		}
		if p != nil {
			return "", 0, p
		}
	}
	switch {
	case !hasToken:
		return "", 0, refuse("token", "missing", tokenAccepted)
	case op.Costs && !hasCost:
		return "", 0, refuse("cost", "missing", costAccepted)
	}
	return token, cost, nil
}

// settleProblem tells the client what is wrong with its token.
func (s *Server) settleProblem(err error, token string) *Problem {
	switch {
	case errors.Is(err, policy.ErrToken):
		return refuse("token", token, tokenAccepted)
	case errors.Is(err, policy.ErrSettled):
		return &Problem{Status: http.StatusConflict, Detail: "nothing is held under the token any more: it was settled, or its time is over"}
	}
	return s.checkProblem(err)
}
