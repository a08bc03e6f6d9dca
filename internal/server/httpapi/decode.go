package httpapi

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store"
)

const (
	keyAccepted     = "a string"
	limitAccepted   = "a limit text such as 100/1m or gcra 10/1s burst=20"
	atAccepted      = "whole microseconds since 1970"
	tokenAccepted   = "the token of a check or a renewal, signed with a key that this server has (--token-key)"
	checkFields     = "method, host, path, query, headers, client_ip, attributes, cost, hold_ms, on_store_error"
	headersAccepted = `an object of header names, each with a text or an array of texts, such as {"Accept":"text/html"}`
	attrsAccepted   = `an object of names, each with a text, such as {"tenant":"acme"}`
)

// decode reads the body of a call. It is strict: one JSON object, each name at most once and spelled
// exactly, no null, nothing after it. A laxer text can mean two things to two readers, and one of them
// would be charging the wrong key.
func (s *Server) decode(q *request, body []byte) *Problem {
	switch q.Form {
	case operation.Request:
		return q.decodeCheck(body)
	case operation.Settlement:
		return q.decodeSettlement(body)
	default:
		return s.decodeLimit(q, body)
	}
}

// eachField calls set for the members of a body. example is one that would do.
func eachField(body []byte, example string, set func(name string, value []byte) *Problem) *Problem {
	m, p := object(body, example)
	if p != nil {
		return p
	}
	var room [16]string
	seen := room[:0]
	for m.next() {
		name := unquote(m.name)
		if slices.Contains(seen, name) {
			return refuse(name, "given twice", "once")
		}
		if p := set(name, m.value); p != nil {
			return p
		}
		seen = append(seen, name)
	}
	return nil
}

// fieldOrder is the order in which errors list the arguments.
var fieldOrder = []operation.Argument{
	operation.Name, operation.Cost, operation.At, operation.End, operation.ID, operation.Life, operation.Late, operation.OnError,
}

func (s *Server) decodeLimit(q *request, body []byte) *Problem {
	hasKey, hasLimit := false, false
	p := eachField(body, `{"key":"user:42","limit":"100/1m"}`, func(name string, value []byte) (p *Problem) {
		switch name {
		case "key":
			hasKey = true
			q.Key, p = text(name, value, keyAccepted)
			return p
		case "limit":
			hasLimit = true
			q.Text, p = text(name, value, limitAccepted)
			return p
		}
		for _, a := range fieldOrder {
			if a&q.Accepts != 0 && name == a.Texts(operation.Fields[:])[0] {
				return s.argument(q, a, name, value)
			}
		}
		fields := []string{"key", "limit"}
		for _, a := range fieldOrder {
			fields = append(fields, (a & q.Accepts).Texts(operation.Fields[:])...)
		}
		return unknownField(name, strings.Join(fields, ", "))
	})
	switch {
	case p != nil:
		return p
	case !hasKey:
		return refuse("key", "missing", keyAccepted)
	case !hasLimit:
		return refuse("limit", "missing", limitAccepted)
	}
	if a, accepted := q.Missing(q.Requires); a != 0 {
		return refuse(a.Texts(operation.Fields[:])[0], "missing", accepted)
	}
	return nil
}

// argument reads an argument of an operation.
func (s *Server) argument(q *request, a operation.Argument, name string, value []byte) (p *Problem) {
	var n int64
	switch a {
	case operation.Name:
		q.Name, p = text(name, value, keyAccepted)
	case operation.OnError:
		p = setText(name, value, store.OnErrorAccepted, q.setOnError)
	case operation.Late:
		q.Op.Late, p = boolean(name, value)
	case operation.At:
		if !s.opts.TrustClientTime {
			return refuse(name, "not trusted", "no time of the client's, unless weir serve runs with --trust-client-time")
		}
		n, p = whole(name, value, operation.Span{Least: math.MinInt64, Most: math.MaxInt64}, atAccepted)
		q.at = time.UnixMicro(n)
	default:
		span := a.Span(time.Microsecond)
		if n, p = whole(name, value, span, span.String()); p == nil {
			q.Set(a, n, time.Microsecond)
		}
	}
	q.Given |= a
	return p
}

func (q *request) setOnError(text string) *checks.Refusal {
	on, err := store.ParseOnError(text)
	if err != nil {
		return &checks.Refusal{Value: text, Accepted: store.OnErrorAccepted}
	}
	q.OnError, q.Given = on, q.Given|operation.OnError
	return nil
}

func (q *request) decodeSettlement(body []byte) *Problem {
	example, fields := `{"token":"..."}`, "token"
	if q.Settles() {
		example, fields = `{"token":"...","cost":3}`, "token, cost, late"
	}
	hasToken, hasCost := false, false
	p := eachField(body, example, func(name string, value []byte) (p *Problem) {
		switch {
		case name == "token":
			hasToken = true
			q.Token, p = text(name, value, tokenAccepted)
		case name == "cost" && q.Settles():
			hasCost = true
			q.Op.Cost, p = whole(name, value, operation.Cost.Span(0), checks.CostAccepted)
		case name == "late" && q.Settles():
			q.Op.Late, p = boolean(name, value)
		default:
			p = unknownField(name, fields)
		}
		return p
	})
	switch {
	case p != nil:
		return p
	case !hasToken:
		return refuse("token", "missing", tokenAccepted)
	case q.Settles() && !hasCost:
		return refuse("cost", "missing", checks.CostAccepted)
	}
	return nil
}

// decodeCheck reads a request for policies. Everything in it may be missing.
func (q *request) decodeCheck(body []byte) *Problem {
	q.Request = new(checks.Request)
	return eachField(body, `{"method":"POST","path":"/login","client_ip":"192.0.2.7"}`, q.setField)
}

func (q *request) setField(name string, value []byte) (p *Problem) {
	r := q.Request
	switch name {
	case "method":
		r.Method, p = text(name, value, "a string")
	case "host":
		r.Host, p = text(name, value, "a string")
	case "path":
		p = setText(name, value, checks.PathAccepted, r.SetPath)
	case "query":
		r.RawQuery, p = text(name, value, "a string")
	case "headers":
		p = setHeaders(r, value)
	case "client_ip":
		p = setText(name, value, checks.AddressAccepted, r.SetAddress)
	case "attributes":
		p = setAttributes(r, value)
	case "on_store_error":
		p = setText(name, value, store.OnErrorAccepted, q.setOnError)
	case "cost":
		p = setWhole(name, value, checks.CostAccepted, r.SetCost)
	case "hold_ms":
		p = setWhole(name, value, checks.HoldAccepted, r.SetHold)
	default:
		p = unknownField(name, checkFields)
	}
	return p
}

func setText(name string, value []byte, accepted string, set func(string) *checks.Refusal) *Problem {
	t, p := text(name, value, accepted)
	if p != nil {
		return p
	}
	return refused(name, set(t))
}

func setWhole(name string, value []byte, accepted string, set func(int64) *checks.Refusal) *Problem {
	n, p := whole(name, value, operation.Span{Least: math.MinInt64, Most: math.MaxInt64}, accepted)
	if p != nil {
		return p
	}
	return refused(name, set(n))
}

// refused is the problem of a refusal, if there is one.
func refused(field string, r *checks.Refusal) *Problem {
	if r == nil {
		return nil
	}
	return refuse(field, r.Value, r.Accepted)
}

func setHeaders(r *checks.Request, value []byte) *Problem {
	if value[0] != '{' {
		return refuse("headers", describe(value), headersAccepted)
	}
	for m, _ := membersOf(value); m.next(); {
		name := unquote(m.name)
		if r.HasHeader(name) {
			return refuse("headers", strconv.Quote(shown(name))+" given twice", "each name once, in any case")
		}
		list, p := texts("headers: "+shown(name), m.value)
		if p != nil {
			return p
		}
		for _, v := range list {
			if refusal := r.AddHeader(name, v); refusal != nil {
				return refused("headers", refusal)
			}
		}
	}
	return nil
}

func setAttributes(r *checks.Request, value []byte) *Problem {
	if value[0] != '{' {
		return refuse("attributes", describe(value), attrsAccepted)
	}
	for m, _ := membersOf(value); m.next(); {
		name := unquote(m.name)
		t, p := text("attributes: "+shown(name), m.value, "a string")
		if p != nil {
			return p
		}
		if refusal := r.AddAttribute(name, t); refusal != nil {
			return refused("attributes", refusal)
		}
	}
	return nil
}

// texts reads a JSON string, or an array of some.
func texts(name string, value []byte) ([]string, *Problem) {
	const accepted = "a string, or an array of one or more"
	if value[0] != '[' {
		t, p := text(name, value, accepted)
		return []string{t}, p
	}
	list := []string{}
	for rest := value[1:]; ; {
		switch rest = bytes.TrimLeft(rest, space+","); rest[0] {
		case ']':
			if len(list) == 0 {
				return nil, refuse(name, "an empty array", accepted)
			}
			return list, nil
		case '"':
			end := stringEnd(rest)
			list, rest = append(list, unquote(rest[:end])), rest[end:]
		default:
			return nil, refuse(name, "an array with others than strings", accepted)
		}
	}
}
