package policy

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// MaxCost is the most that a request can cost: numbers up to it are exact in JSON and everywhere else.
const MaxCost = 1 << 53

// A RequestError says what of a request makes no sense: it is who asks who is wrong, and nothing was charged.
type RequestError struct {
	Field  string // such as header X-Cost
	Value  string
	Accept string
}

// Error implements error.
func (e *RequestError) Error() string {
	return fmt.Sprintf("weir: %s is %s; accepted: %s", e.Field, short(e.Value), e.Accept)
}

// A coster says what requests cost.
type coster struct {
	units   int64 // if there is nothing else
	silent  bool  // the policy says no cost
	from    *source
	methods map[string]int64 // upper case
}

func (p *problems) cost(c *Cost, field string) (k coster) {
	given := 0
	for _, set := range []bool{c.Units != 0, c.From != "", c.Methods != nil} {
		if set {
			given++
		}
	}
	if given > 1 {
		p.addf(field, "says more than one of units, from and methods; accepted: one")
	}
	k.silent = given == 0
	if k.units = c.Units; c.Units == 0 {
		k.units = 1
	}
	p.units(c.Units, field)
	if c.From != "" {
		kind, name, _ := strings.Cut(c.From, ":")
		k.from = &source{sourceKind(kind), name}
		if k.from.kind == header {
			k.from.name = textproto.CanonicalMIMEHeaderKey(name)
		}
		if ok := k.from.kind == header && isToken(name) || k.from.kind == attribute && name != ""; !ok {
			p.addf(field, "is %s; accepted: a number, header:name, attribute:name, or a number for each method", short(c.From))
		}
	}
	if c.Methods != nil {
		k.methods = map[string]int64{}
		if len(c.Methods) == 0 {
			p.addf(field, "has no methods; accepted: a number for each, such as {GET: 1, \"*\": 5}")
		}
	}
	for _, method := range sorted(c.Methods) {
		p.methodCost(k.methods, method, c.Methods[method], field+"."+method)
	}
	return k
}

func (p *problems) methodCost(costs map[string]int64, method string, units int64, field string) {
	p.units(units, field)
	upper := strings.ToUpper(method)
	if _, twice := costs[upper]; twice {
		p.addf(field, "is there twice, as methods are in any case; accepted: once")
	}
	if !isToken(method) {
		p.addf(field, "is for no method; accepted: methods such as GET, and * for all others")
	}
	costs[upper] = units
}

func (p *problems) units(n int64, field string) {
	if (n < 0 || n > MaxCost) && !p.broken(field) {
		p.addf(field, "is %d; accepted: 0 to %d", n, MaxCost)
	}
}

// cost returns what the request costs, and whether the request itself says so.
func (k *coster) cost(r *facts) (units int64, said bool, err error) {
	switch {
	case r.Cost != nil:
		return *r.Cost, true, nil
	case k.silent && r.Estimate != nil:
		return *r.Estimate, true, nil
	case k.from != nil:
		return k.read(r)
	case k.methods != nil:
		if units, ok := k.methods[r.Method]; ok {
			return units, false, nil
		}
		if units, ok := k.methods[strings.ToUpper(r.Method)]; ok {
			return units, false, nil
		}
		if units, ok := k.methods[http.MethodGet]; ok && strings.EqualFold(r.Method, http.MethodHead) {
			return units, false, nil
		}
		if units, ok := k.methods["*"]; ok {
			return units, false, nil
		}
		return 1, false, nil
	}
	return k.units, false, nil
}

// read takes the cost from the request. One that does not say costs 1. A header may be written by anybody: it can't make a request free.
func (k *coster) read(r *facts) (units int64, said bool, err error) {
	var text string
	var least int64
	if k.from.kind == header {
		values := r.field(k.from.name)
		if len(values) == 0 {
			return 1, true, nil
		}
		text, least = strings.Join(values, ", "), 1
	} else if v, ok := r.attribute(k.from.name); ok {
		text = v
	} else {
		return 1, true, nil
	}
	digits := strings.TrimSpace(text)
	units, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || strings.Trim(digits, "0123456789") != "" || units < least || units > MaxCost {
		return 0, false, &RequestError{string(k.from.kind) + " " + k.from.name, text, fmt.Sprintf("a whole number, %d to %d", least, MaxCost)}
	}
	return units, true, nil
}
