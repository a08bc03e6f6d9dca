// Package algorithm holds the rate-limiting algorithms, each as a pure transition over a few integers: no clock, no
// lock, no network. What makes a transition atomic is a store's business.
//
// # The words
//
// A [Limit] says: at most Count units per Period, under an [Algorithm]; [ParseLimit] reads it from text such as
// "100/1m" or "gcra 10/1s burst=20". A request has a cost, in units, mostly 1. Cost 0 is a peek: it is answered and
// changes nothing.
//
// A [Program] is a Limit compiled for a clock that counts in ticks, of a nanosecond or of a microsecond. Its state,
// one per key, is a slice of int64; an empty one is a key never seen. [Program.Apply] takes a state, an
// operation ([Op]) and a time, and gives the next state and a [Result]: how many units were taken, and the
// [Decision]. A denial is a Decision, costs nothing, and leaves the state as it was (only a strict [Exponential]
// counts it).
//
// [Program.Fresh] says when a state may be forgotten, and [Program.Heal] repairs one that a clock which stepped
// back has left too far ahead. [Word] is the same transition over a single int64, for a store that keeps a key in
// one atomic word.
//
// Time may repeat or step back between operations: that may deny for longer, and never admits more.
//
// # Choosing
//
// Take [TokenBucket] unless one of these is true:
//
//   - What is behind must not see a burst, and callers can wait: [LeakyQueue]. They can't: [MinInterval].
//   - No window may hold more than the quota: [SlidingLog] while the quota is small, else [SlidingBuckets].
//   - The quota is known to people by the clock: [FixedWindow]; by their own first request: [QuotaReset]; as an
//     allowance that is saved up: [RefillBucket].
//   - The quota is by the day or month of a calendar: [Calendar].
//   - Clients just above the limit must be stopped soon: [Exponential], [SlidingWindow] or [Hybrid].
//   - The work itself must be bounded, not how often it begins: [Concurrent].
//
// [GCRA], [LeakyBucket] and [Cooldown] decide as the token bucket does. They are here under the names that people
// look for, and run the same code.
//
// # The algorithms
//
// Each constant's comment has the definition, the worst case, the reaction time, the size of the state, the use and
// the source: [TokenBucket], [GCRA], [LeakyBucket], [LeakyQueue], [Cooldown], [MinInterval], [RefillBucket],
// [FixedWindow], [QuotaReset], [SlidingLog], [SlidingWindow], [SlidingBuckets], [Hybrid], [Exponential], [Calendar], [Concurrent].
// docs/algorithms.md compares them side by side.
//
// # When a limit changes, and paying later
//
// An [Account] is the record of a key under a name: a state and the limit that produced it. [Account.Apply] does what
// [Program.Apply] does, also for a limit that did not produce the state. Accounts also keep reservations, which a [Reserve]
// makes and a [Commit] settles.
package algorithm
