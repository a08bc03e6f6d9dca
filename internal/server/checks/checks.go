// Package checks is what the protocols have in common where policies decide: which policies, and what a client may say of a request.
package checks

import (
	"context"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// Policies decide on requests by the rules that they have. A *policy.Set is one. It may be used by many goroutines at once.
type Policies interface {
	Check(ctx context.Context, r *policy.Request) (policy.Decision, error)
	// Keys are what a request is counted as: of two that have one in common, the second finds what the first has left.
	Keys(r *policy.Request) []string
	Explain(ctx context.Context, r *policy.Request) (*policy.Explanation, error)
	Release(ctx context.Context, token string) error
	Commit(ctx context.Context, token string, cost int64) error
	CommitLate(ctx context.Context, token string, cost int64) error
	Cancel(ctx context.Context, token string) error
	Renew(ctx context.Context, token string) (string, error)
}

// LimitText is the text of a decision's limit, or the word of a plan that has no limits: unlimited or deny.
func LimitText(d policy.LimitDecision) string {
	switch {
	case d.Limit != weir.Limit{}:
		return d.Limit.String()
	case d.Allowed:
		return "unlimited"
	}
	return "deny"
}
