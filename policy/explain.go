package policy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/decide"
)

// An Explanation says how a request would be decided, and why.
type Explanation struct {
	Allowed bool `json:"allowed"`
	// RetryAfter is when the same request would pass, if it would not now; weir.Never if it never will.
	RetryAfter time.Duration   `json:"-"`                // retry_after_us
	Denied     []string        `json:"denied,omitempty"` // policies
	Policies   []ExplainedRule `json:"policies"`
}

// An ExplainedRule is a policy, and what it says about the request.
type ExplainedRule struct {
	Name    string `json:"name"`
	Matched bool   `json:"matched"`
	// Mismatch is why it does not match: of its alternatives, the one that comes furthest.
	Mismatch *Mismatch `json:"mismatch,omitempty"`

	Mode string `json:"mode,omitempty"`
	// Key and Client are masked, as [LimitDecision.MaskedKey] is.
	Key          string            `json:"key,omitempty"`
	Client       string            `json:"client,omitempty"`
	Plan         string            `json:"plan,omitempty"`
	PlanReason   string            `json:"plan_reason,omitempty"`
	Cost         int64             `json:"cost"`
	CostError    string            `json:"cost_error,omitempty"` // why a policy that enforces nothing is left out
	OnStoreError string            `json:"on_store_error,omitempty"`
	Limits       []*ExplainedLimit `json:"limits,omitempty"`
}

// A Mismatch is the first thing that does not hold.
type Mismatch struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Found string `json:"found"`
}

// An ExplainedLimit is what stands for one limit, and what it would say.
type ExplainedLimit struct{ LimitDecision }

// Explain says for each policy whether it matches the request and why not, and for those that match what stands for their limits, and what Check would decide now. It changes nothing.
func (s *Set) Explain(ctx context.Context, r *Request) (*Explanation, error) {
	v := s.load()
	if v == nil {
		return nil, errNoPolicies
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := r.costs(); err != nil {
		return nil, err
	}
	f := &facts{Request: r}
	policies, err := v.applied(f, nil)
	if err != nil {
		return nil, err
	}
	q := &decide.Request{Now: s.now(), Holdings: new([]decide.Holding)}
	e := &Explanation{Policies: make([]ExplainedRule, 0, len(v.rules))}
	for i := range v.rules {
		rule := &v.rules[i]
		if len(policies) == 0 || policies[0].rule != rule {
			e.Policies = append(e.Policies, ExplainedRule{Name: rule.name, Mismatch: v.mismatch(i, f)})
			continue
		}
		x, err := v.explain(ctx, q, policies[:1])
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(x.Limits, func(l *ExplainedLimit) bool { return l.Role == Enforced && !l.Allowed }) {
			e.Denied = append(e.Denied, rule.name)
		}
		e.Policies, policies = append(e.Policies, x), policies[1:]
	}
	all, _ := decide.Sum(q.Claims)
	e.Allowed, e.RetryAfter = all.Allowed, all.RetryAfter
	return e, nil
}

// explain returns what the one policy, which matches, would do. It adds the limits to q.
func (v *rules) explain(ctx context.Context, q *decide.Request, policies []applied) (ExplainedRule, error) {
	a := &policies[0]
	x := ExplainedRule{
		Name: a.name, Matched: true, Mode: modeEnforce, Key: a.rule.key.mask(a.key), Client: MaskClient(a.client), Plan: a.group.plan, PlanReason: v.reason(a), Cost: a.cost,
		OnStoreError: a.onError.String(),
	}
	if a.role == Shadow {
		x.Mode = modeShadow
	}
	if a.wrong != nil {
		x.CostError = strings.TrimPrefix(a.wrong.Error(), "weir: ")
		return x, nil //nolint:nilerr // it is explained
	}
	list, each := claims(policies, nil)
	for i := range list {
		if err := q.Look(ctx, list[i:i+1]); err != nil {
			return x, err
		}
		each[i].Cost = list[i].Cost
		x.Limits = append(x.Limits, &ExplainedLimit{each[i]})
	}
	q.Claims = append(q.Claims, list...)
	return x, nil
}

// reason says why the client has the plan that it has, or none.
func (v *rules) reason(a *applied) string {
	switch {
	case a.rule.client == nil:
		return "the policy knows no clients"
	case v.clients == nil:
		return "there are no clients; the default limits apply"
	case a.client == "":
		return "the request names no client; the default limits apply"
	}
	switch {
	case a.grant == nil:
		return "the client has no plan; the default limits apply"
	case a.group.plan == planOwn:
		return "the client has limits of its own"
	case a.group.plan != "":
		return "the client has the plan"
	case a.grant.Plan != "":
		return fmt.Sprintf("the client has the plan %s, which the policy does not name; the default limits apply", short(a.grant.Plan))
	}
	return "the client has limits of its own for other policies; the default limits apply"
}

// mismatch says why a policy does not match: what failed last among its alternatives' first failures.
func (v *rules) mismatch(policy int, r *facts) *Mismatch {
	var best *Mismatch
	furthest := -1
	all := v.index.alternatives // in the order of their policies
	first, _ := slices.BinarySearchFunc(all, int32(policy), func(a indexed, policy int32) int { return int(a.policy - policy) })
	for _, a := range all[first:] {
		if int(a.policy) != policy {
			break
		}
		if m, held := a.mismatch(r, v.identifies); held > furthest {
			best, furthest = m, held
		}
	}
	return best
}

// mismatch returns the first thing that does not hold, and how many held before. It masks the
// values of sources that are secret.
func (a *alternative) mismatch(r *facts, secret func(source) bool) (m *Mismatch, held int) {
	if !a.matchesPath(r.Path) {
		var texts []string
		for i := range a.paths {
			texts = append(texts, a.paths[i].text)
		}
		return &Mismatch{"path", strings.Join(texts, " or "), present(r.Path, r.Path != "")}, 0
	}
	for i, t := range a.tests {
		if t.holds(r) {
			continue
		}
		m = &Mismatch{t.field(), t.want(), t.found(r)}
		if v, ok := t.(*valueTest); ok && secret(v.of) {
			if value, has := v.of.first(r); has {
				m.Found = identity.Mask(value)
			}
		}
		return m, i + 1
	}
	return nil, len(a.tests) + 1
}

// WriteText writes the explanation for people.
func (e *Explanation) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	switch {
	case e.Allowed:
		fmt.Fprintln(b, "allowed")
	default:
		fmt.Fprintf(b, "denied by %s; next allowed %s\n", strings.Join(e.Denied, ", "), after(e.RetryAfter))
	}
	for i := range e.Policies {
		e.Policies[i].write(b)
	}
	return b.Flush()
}

func (x *ExplainedRule) write(b *bufio.Writer) {
	if !x.Matched && x.Mismatch.Field == "not" {
		fmt.Fprintf(b, "\n%s does not match: it is not for %s\n", x.Name, x.Mismatch.Found)
		return
	}
	if !x.Matched {
		fmt.Fprintf(b, "\n%s does not match: %s is %s, and would have to be %s\n", x.Name, x.Mismatch.Field, x.Mismatch.Found, x.Mismatch.Want)
		return
	}
	fmt.Fprintf(b, "\n%s matches\n", x.Name)
	line := func(name, text string) { fmt.Fprintf(b, "  %-8s %s\n", name, text) }
	if x.Mode == modeShadow {
		line("mode", "shadow: it never denies")
	}
	if x.Key == "" {
		line("key", "all, as one")
	} else {
		line("key", x.Key)
	}
	if x.Client != "" {
		line("client", x.Client)
	}
	switch {
	case x.Plan != "":
		line("plan", x.Plan+": "+x.PlanReason)
	default:
		line("plan", "none: "+x.PlanReason)
	}
	if x.CostError != "" {
		line("cost", x.CostError+"; it enforces nothing, and is left out")
	} else {
		line("cost", strconv.FormatInt(x.Cost, 10))
	}
	for _, l := range x.Limits {
		line("limit", l.text())
	}
}

// text is one line about the limit.
func (l *ExplainedLimit) text() string {
	if l.Limit == (weir.Limit{}) {
		if l.Allowed {
			return planUnlimited
		}
		return planDeny
	}
	text := l.Limit.String()
	if l.Role != Enforced {
		text += " (" + l.Role.String() + ")"
	}
	if l.Failed {
		verdict := "would deny"
		if l.Allowed {
			verdict = "would allow"
		}
		return text + ": the store could not be asked; " + verdict
	}
	text += fmt.Sprintf(": %d of %d remain", l.Remaining, l.Decision.Limit)
	switch {
	case l.Allowed && l.Delay > 0:
		text += ", would allow, after " + l.Delay.String()
	case l.Allowed:
		text += ", would allow"
	default:
		text += ", would deny; next allowed " + after(l.RetryAfter)
	}
	return text
}

func after(d time.Duration) string {
	if d == weir.Never {
		return "never"
	}
	return "in " + d.String()
}
