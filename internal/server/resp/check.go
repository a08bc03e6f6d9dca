package resp

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

func checkCommands() []*command {
	flags := []string{"write", "fast"}
	list := []*command{{
		name: "weir.check", arity: -1, flags: flags, group: "weir", run: (*conn).check,
		summary: "Asks whether a request may pass, by the policies that match it.",
	}}
	for _, s := range checks.Settlements {
		list = append(list, &command{
			name: "weir.check." + s.Name, arity: settlementArity(s), flags: flags, group: "weir", summary: s.Summary,
			run: func(c *conn) { c.settleChecked(s) },
		})
	}
	return list
}

// settlementArity is the number of arguments; a cost can be followed by LATE.
func settlementArity(s checks.Settlement) int {
	if s.Costs {
		return -3
	}
	return 2
}

// A checking is what the policies are asked, and afterwards what came of it.
type checking struct {
	policies checks.Policies
	request  *policy.Request // nil: it settles the token
	settle   checks.Settlement
	token    string
	cost     int64
	late     bool

	decision policy.Decision
	next     string // the token that takes the token's place, or empty
}

// decide asks the policies. The verdict is that of the request: it is granted or not.
func (k *checking) decide(ctx context.Context) (v algorithm.Verdict, err error) {
	if k.request == nil {
		k.next, err = k.settle.Do(ctx, k.policies, k.token, k.cost, k.late)
		if err != nil && k.next != "" {
			err = fmt.Errorf("%w; what is still held is under %s", err, k.next)
		}
		return v, err
	}
	k.decision, err = k.policies.Check(ctx, k.request)
	if !k.decision.Allowed {
		v.Granted = -1
	}
	return v, err
}

// keys yields what checks have in common of which each waits for the one before it.
func (k *checking) keys(yield func(string) bool) {
	if k.request == nil {
		yield(k.token)
		return
	}
	for _, key := range k.policies.Keys(k.request) {
		if !yield(key) {
			return
		}
	}
}

// policies returns the policies, or replies that there are none.
func (c *conn) policies() checks.Policies {
	p := c.server.options.Policies
	if p == nil {
		c.fail("ERR this server has no policies; weir serve --config weir.yaml has those of the file")
	}
	return p
}

// check is WEIR.CHECK [METHOD m] [HOST h] [PATH p] [QUERY q] [HEADER name value]... [IP address] [ATTR name value]... [COST n] [HOLD ms]
// [ONERROR deny|allow|local].
func (c *conn) check() {
	p := c.policies()
	if p == nil {
		return
	}
	q := checkArgs{}
	for args := c.args[1:]; len(args) > 0; {
		rest, refusal := q.read(args)
		if refusal != "" {
			c.fail("ERR " + refusal)
			return
		}
		args = rest
	}
	if user := c.user; c.session != nil {
		q.May = func(policy, key string) bool { return user.May(access.Check, policy, key) }
	}
	c.do(call{at: store.OwnClock, counts: true, check: &checking{policies: p, request: &q.Request.Request}, onError: q.OnError})
}

// settleChecked is WEIR.CHECK.RELEASE, COMMIT, CANCEL and RENEW token [cost [LATE]].
func (c *conn) settleChecked(s checks.Settlement) {
	k := checking{policies: c.policies(), settle: s, token: string(c.args[1])}
	ok := k.policies != nil
	if ok && s.Costs {
		k.cost, ok = c.numberIn("cost", c.args[2], span{0, policy.MaxCost})
	}
	if ok && s.Costs && len(c.args) > 3 {
		if k.late = len(c.args) == 4 && string(c.upper(c.args[3])) == "LATE"; !k.late {
			c.fail("ERR syntax error at " + excerpt(c.args[len(c.args)-1]) + "; accepted: LATE, once")
			return
		}
	}
	if ok {
		c.do(call{at: store.OwnClock, check: &k})
	}
}

// checked is what came of a check: the decision in numbers, the names of the policies that denied, the token, and what
// stands for each limit; and after ONERROR who decided.
func (r *replies) checked(of *call) {
	k := of.check
	if k.request == nil {
		if k.next == "" {
			r.ok()
		} else {
			r.bulk(k.next)
		}
		return
	}
	d := k.decision
	r.array(9 + one(of.onError != nil))
	r.decision(d.Decision, time.Microsecond)
	r.array(len(d.Denied))
	for _, name := range d.Denied {
		r.bulk(name)
	}
	r.bulk(d.Token)
	r.array(len(d.Each))
	for _, l := range d.Each {
		r.array(9)
		r.bulk(l.Policy)
		r.bulk(checks.LimitText(l))
		r.bulk(l.Role.String())
		r.decision(l.Decision, time.Microsecond)
	}
	if of.onError != nil {
		r.integer(of.source())
	}
}
