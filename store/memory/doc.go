// Package memory keeps limits in the memory of the process, exactly: two keys never share a budget, and however many
// goroutines ask at once, no more is admitted than the limit says.
//
// [New] makes a store; weir.New makes one for itself if it is given none. A decision on a state of one word (see
// [algorithm.Word]) is a probe without a lock and one compare-and-swap; a denial writes nothing. Other states, and the accounts of
// bindings with a name, are behind a lock for each of 64 shards. Those of several of these limits that a request must pass together are decided
// in one step, see [Store.TakeAll].
//
// # Bounds
//
// A store holds at most [Options.MaxKeys] keys. It forgets a key only when it can't be told from one never seen, so no flood
// of keys frees one that is blocked. When all keys are live, [Options.Overflow] says what happens to a new one; [Stats]
// counts how often.
//
// A key of a one-word state takes 34 to 64 bytes, 50 at a million keys (bench/ measures it); one of several words or under a name
// some 170, and a sliding log 16 more for each instant at which units were admitted. Reservations, and limits of a name that were in force
// lately, add to that, and count against MaxKeys.
//
// # Time
//
// The store's clock is the wall clock of when it was made plus what the monotonic clock has counted since: it does not
// step. See [Options.ClockResolution] for a faster one. Those who give times of their own to limiters on one store should give
// them from one clock: a key that is new at a time before that of a forgotten one may be denied until then.
package memory
