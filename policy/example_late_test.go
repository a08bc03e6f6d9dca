package policy_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/policy"
)

// Work that takes longer than its reservation is charged in full, as debt where there is no room.
func ExampleSet_CommitLate() {
	ctx, now := context.Background(), time.Now()
	set := must(policy.New(must(policy.Parse([]byte(`policies: [{name: tokens, key: all, limits: [fixed-window 1000/24h]}]`), "weir.yaml")),
		policy.Options{Clock: func() time.Time { return now }}))
	estimate, nothing := int64(400), int64(0)
	d := must(set.Check(ctx, &policy.Request{Cost: &estimate, Hold: time.Minute}))
	now = now.Add(2 * time.Minute)

	err := set.Commit(ctx, d.Token, 600)
	fmt.Println(errors.Is(err, policy.ErrSettled))
	fmt.Println(set.CommitLate(ctx, d.Token, 600), must(set.Check(ctx, &policy.Request{Cost: &nothing})).Remaining)
	// Output:
	// true
	// <nil> 400
}
