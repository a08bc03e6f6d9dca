package httpapi

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/store"
)

const (
	checkExample    = `{"method":"POST","path":"/login","client_ip":"192.0.2.7"}`
	checkFields     = "method, host, path, query, headers, client_ip, attributes, cost, hold_ms, on_store_error"
	headersAccepted = `an object of header names, each with a text or an array of texts, such as {"Accept":"text/html"}`
	attrsAccepted   = `an object of names, each with a text, such as {"tenant":"acme"}`
)

// A checkBody is what a check says.
type checkBody struct {
	checks.Request

	seen []string
}

// decodeCheck reads a body as strictly as decode does. Everything in it may be missing.
func decodeCheck(body []byte) (*checks.Request, *Problem) {
	m, p := object(body, checkExample)
	if p != nil {
		return nil, p
	}
	q := new(checkBody)
	for m.next() {
		name := unquote(m.name)
		if slices.Contains(q.seen, name) {
			return nil, refuse(name, "given twice", "once")
		}
		if p := q.set(name, m.value); p != nil {
			return nil, p
		}
		q.seen = append(q.seen, name)
	}
	return &q.Request, nil
}

func (q *checkBody) set(name string, value []byte) (p *Problem) {
	switch name {
	case "method":
		q.Method, p = text(name, value, "a string")
	case "host":
		q.Host, p = text(name, value, "a string")
	case "path":
		p = setText(name, value, checks.PathAccepted, q.SetPath)
	case "query":
		q.RawQuery, p = text(name, value, "a string")
	case "headers":
		p = q.setHeaders(value)
	case "client_ip":
		p = setText(name, value, checks.AddressAccepted, q.SetAddress)
	case "attributes":
		p = q.setAttributes(value)
	case "on_store_error":
		p = setText(name, value, store.OnErrorAccepted, q.SetOnError)
	case "cost":
		p = setWhole(name, value, checks.CostAccepted, q.SetCost)
	case "hold_ms":
		p = setWhole(name, value, checks.HoldAccepted, q.SetHold)
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
	n, p := whole(name, value, math.MinInt64, accepted)
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

func (q *checkBody) setHeaders(value []byte) *Problem {
	if value[0] != '{' {
		return refuse("headers", describe(value), headersAccepted)
	}
	for m, _ := membersOf(value); m.next(); {
		name := unquote(m.name)
		if q.HasHeader(name) {
			return refuse("headers", strconv.Quote(shown(name))+" given twice", "each name once, in any case")
		}
		list, p := texts("headers: "+shown(name), m.value)
		if p != nil {
			return p
		}
		for _, v := range list {
			if r := q.AddHeader(name, v); r != nil {
				return refused("headers", r)
			}
		}
	}
	return nil
}

func (q *checkBody) setAttributes(value []byte) *Problem {
	if value[0] != '{' {
		return refuse("attributes", describe(value), attrsAccepted)
	}
	for m, _ := membersOf(value); m.next(); {
		name := unquote(m.name)
		t, p := text("attributes: "+shown(name), m.value, "a string")
		if p != nil {
			return p
		}
		if r := q.AddAttribute(name, t); r != nil {
			return refused("attributes", r)
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
