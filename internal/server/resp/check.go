package resp

import (
	"strings"

	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/policy"
)

// settlement is WEIR.CHECK.RELEASE, COMMIT, CANCEL and RENEW token [cost [LATE]].
func (c *conn) settlement(o *operation.Operation) {
	if !c.hasPolicies() {
		return
	}
	k := c.newCall(o)
	k.Token = string(c.args[1])
	if o.Settles() {
		var ok bool
		if k.Op.Cost, ok = c.numberIn("cost", c.args[2], operation.Span{Least: 0, Most: policy.MaxCost}); !ok {
			return
		}
		if k.Op.Late = len(c.args) == 4 && c.is(c.args[3], "LATE"); !k.Op.Late && len(c.args) > 3 {
			c.fail("ERR syntax error at " + excerpt(c.args[len(c.args)-1]) + "; accepted: LATE, once")
			return
		}
	}
	c.do(k)
}

// hasPolicies reports whether the server has policies, and replies otherwise.
func (c *conn) hasPolicies() bool {
	if c.server.options.Policies == nil {
		c.fail("ERR " + operation.NoPolicies)
		return false
	}
	return true
}

// check is WEIR.CHECK with the fields of a request.
func (c *conn) check(o *operation.Operation) {
	if !c.hasPolicies() {
		return
	}
	k, seen := c.newCall(o), map[string]bool{}
	k.Request = &checks.Request{} // it copies what it keeps of the arguments
	for args := c.args[1:]; len(args) > 0; {
		word := strings.ToUpper(string(args[0]))
		size := checkSizes[word]
		switch {
		case size == 0 || seen[word]:
			c.fail("ERR syntax error at " + excerpt(args[0]) + "; accepted: " + checkWords)
			return
		case len(args) < size:
			c.fail("ERR syntax error: " + excerpt(args[0]) + " needs " + []string{"a value", "a name and a value"}[size-2])
			return
		}
		seen[word] = size == 2
		if r := setField(k.Request, word, args[1:size]); r != nil {
			c.fail("ERR " + word + " is " + excerpt([]byte(r.Value)) + "; accepted: " + r.Accepted)
			return
		}
		args = args[size:]
	}
	if k.Request.OnError != nil {
		k.OnError, k.Given = *k.Request.OnError, operation.OnError
	}
	c.server.options.Restrict(&k.Request.Request, c.user)
	c.do(k)
}

// checkSizes are the words of a check, and how many arguments each is with its values.
var checkSizes = map[string]int{
	"METHOD": 2, "HOST": 2, "PATH": 2, "QUERY": 2, "IP": 2, "COST": 2, "HOLD": 2, "ONERROR": 2, "HEADER": 3, "ATTR": 3,
}

const checkWords = "METHOD m, HOST h, PATH p, QUERY q, IP address, COST n, HOLD milliseconds, ONERROR deny|allow|local, each once; and HEADER name value, ATTR name value"

// setField sets a field of a request.
func setField(q *checks.Request, word string, values [][]byte) *checks.Refusal {
	value := string(values[len(values)-1])
	switch word {
	case "METHOD":
		q.Method = value
	case "HOST":
		q.Host = value
	case "QUERY":
		q.RawQuery = value
	case "PATH":
		return q.SetPath(value)
	case "ONERROR":
		return q.SetOnError(value)
	case "IP":
		return q.SetAddress(value)
	case "HEADER":
		return q.AddHeader(string(values[0]), value)
	case "ATTR":
		return q.AddAttribute(string(values[0]), value)
	default: // COST, HOLD
		set, accepted := q.SetCost, checks.CostAccepted
		if word == "HOLD" {
			set, accepted = q.SetHold, checks.HoldAccepted
		}
		n, ok := parseInt(values[0])
		if !ok {
			return &checks.Refusal{Value: value, Accepted: accepted}
		}
		return set(n)
	}
	return nil
}
