package checks

import "context"

// A Settlement is what can be done with the token of a check.
type Settlement struct {
	Name    string
	Summary string
	Costs   bool // has a cost, and can be late: charged also if the reservation has expired
	// Do returns the token that replaces the old token, if there is still something to settle, also
	// with an error.
	Do func(ctx context.Context, p Policies, token string, cost int64, late bool) (next string, err error)
}

// Settlements are all that there are.
var Settlements = []Settlement{
	{
		Name: "release", Summary: "Says that the work of a request that was checked is done.",
		Do: func(ctx context.Context, p Policies, token string, _ int64, _ bool) (string, error) {
			return "", p.Release(ctx, token)
		},
	},
	{
		Name: "commit", Summary: "Says what a request that was checked has really cost.", Costs: true,
		Do: func(ctx context.Context, p Policies, token string, cost int64, late bool) (string, error) {
			if late {
				return "", p.CommitLate(ctx, token, cost)
			}
			return "", p.Commit(ctx, token, cost)
		},
	},
	{
		Name: "cancel", Summary: "Says that the work of a request that was checked did not happen.",
		Do: func(ctx context.Context, p Policies, token string, _ int64, _ bool) (string, error) {
			return "", p.Cancel(ctx, token)
		},
	},
	{
		Name: "renew", Summary: "Says that the work of a request that was checked goes on.",
		Do: func(ctx context.Context, p Policies, token string, _ int64, _ bool) (string, error) {
			return p.Renew(ctx, token)
		},
	},
}
