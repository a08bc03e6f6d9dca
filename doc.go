// Package weir decides whether a request may pass: no more than so many, per client, exactly.
//
//	limiter, err := weir.New(weir.MustParseLimit("100/1m"))
//	d, err := limiter.Take(ctx, "user:42", 1)
//	if err == nil && !d.Allowed {
//		// come back after d.RetryAfter
//	}
//
// A [Limit] is at most Count units per Period, under one of sixteen algorithms; [ParseLimit] reads its text form. A
// [Limiter] enforces one limit on any number of keys: who is limited, such as a user, an address or an API key. A request
// takes units, its cost. The [Decision] says whether it may pass, what remains, and when to come back. A denial is a
// decision and costs nothing; an error means that none could be made, and it is for the program to say what happens then.
//
// # Which method
//
//   - [Limiter.Take] asks, and takes the cost or nothing. Most programs need no other.
//   - [Limiter.Allow] is a Take of 1 with a bool as its result, for programs that need neither the error nor
//     the Decision.
//   - [Limiter.TakeMany] asks for many keys at once, faster; [Limiter.TakeUpTo] takes what there is.
//   - [Limiter.Peek] looks and changes nothing; [Limiter.Refund] gives back; [Limiter.Reset] forgets the key.
//   - [Limiter.Wait] blocks until the request may pass, first in, first out. "10/1s" begins with a
//     burst of 10; "10/1s burst=1" spaces requests evenly from the first on.
//   - [Limiter.Acquire] blocks until a concurrent limit has a place, and returns a [Lease], which is
//     renewed until its Release.
//   - [Limiter.Reserve] is a Take that can be cancelled, for work that may not happen, and of a concurrent limit for work that is in flight.
//   - [Limiter.Hold] takes an estimate, for work whose cost is known at its end.
//   - [Limiter.SetLimit] changes the limit while it is used; what was used stays used.
//
// Those that end in At take the time as an argument, for tests, replays and simulations.
//
// # Where the state is
//
// In the memory of the process, unless [WithStore] says otherwise; see package store/memory for its bounds and its
// clocks. A limiter made without a store has one of its own. Limiters of one name ([WithName]) on one store share a key's state, also when their
// limits differ: what was used stays used when a limit changes. Those without a name share it if their limits are equal.
//
// # While the store fails
//
// Methods return the error of the store. With [WithOnStoreError], or for a call with
// store.WithOnError, they allow all requests, or enforce the limit, or a share of it, in the memory of
// the process. The Decision is then Failed, and Local if the limit was enforced.
//
// # Exactness
//
// Rates are exact fractions, whatever the count and the period. At most the bound of the algorithm is admitted (see
// docs/algorithms.md), however many goroutines ask at once; time that steps back may deny a key for longer, and mints
// nothing. RetryAfter is enough and not a nanosecond longer than needed, if no other request comes; Remaining would pass.
package weir
