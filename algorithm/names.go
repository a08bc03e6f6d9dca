package algorithm

// Algorithm names a rate-limiting algorithm, as the limit text spells it.
//
// The comment above each constant defines it. They write q for Count, w for Period, T = w/q for the interval
// between units, b for the capacity, L for the length of any interval. Bounds are the most units
// admitted at a cost of 1 each; package bounds finds them by exhaustive search. Reaction is what a client that asks
// at a steady a times the limit (a > 1) gets from a fresh key before its first denial.
type Algorithm string

// TokenBucket is a bucket of Burst tokens, which starts full and gains Count per Period, continuously. A request
// takes as many tokens as it costs, or is denied and takes none. It is the default.
//
//   - Bound: b+⌊L/T⌋ in any closed interval; so b+q−1 in a half-open window, b+q in a closed one.
//   - Reaction: ⌊(b−1)·a/(a−1)⌋+1 units: twice the quota at twice the limit, hardly more than b at ten times.
//   - State: one word, the time at which the bucket will be full. Two when T isn't a whole number of ticks.
//   - Use: for requests in general. It forgives bursts, makes a busy client's rate even, and costs least.
//   - Source: S. Shenker and J. Wroclawski, "General Characterization Parameters for Integrated Service Network
//     Elements", RFC 2215, 1997.
const TokenBucket Algorithm = "token-bucket"

// GCRA is the generic cell rate algorithm. It keeps a theoretical arrival time: when the next unit would come if all came
// evenly. A unit passes if it is early by at most (Burst−1)·T, and moves that time on by T, counted from now
// if it had passed. It decides as [TokenBucket] does, by the same kernel.
//
//   - Bound: b+⌊L/T⌋ in any closed interval.
//   - Reaction: ⌊(b−1)·a/(a−1)⌋+1 units.
//   - State: one word, the theoretical arrival time. Two when T isn't a whole number of ticks.
//   - Use: as the token bucket, by the name that networks know.
//   - Source: The ATM Forum, "Traffic Management Specification Version 4.0", 1996, and ITU-T Recommendation I.371; for
//     requests: T. Finch, "GCRA: leaky buckets without the buckets", 2024.
const GCRA Algorithm = "gcra"

// LeakyBucket is the leaky bucket as a meter: it holds Burst units and leaks Count per Period, continuously. A
// request pours in what it costs, or is denied if that would not fit. It is [TokenBucket] seen from above: what is in
// the one is missing from the other. It delays nothing; [LeakyQueue] does.
//
//   - Bound: b+⌊L/T⌋ in any closed interval.
//   - Reaction: ⌊(b−1)·a/(a−1)⌋+1 units.
//   - State: one word, the time at which the bucket will be empty. Two when T isn't a whole number of ticks.
//   - Use: as the token bucket, where people think in levels.
//   - Source: J. S. Turner, "New Directions in Communications (or Which Way to the Information Age?)", IEEE
//     Communications Magazine 24(10), 1986.
const LeakyBucket Algorithm = "leaky-bucket"

// LeakyQueue is the leaky bucket as a queue: an admitted request waits for its turn, the Decision's Delay. An idle
// queue lets a request go at once, then one unit each T; up to Queue units wait, first in, first out, and a
// request that finds no room is denied. The capacity is Queue+1: those that wait, and the one that goes.
//
//   - Bound: what is let go: 1+⌊L/T⌋ in any closed interval, so q+1 in a closed window. A request that costs more
//     than 1 goes as one, and the queue then pauses for its cost. What is admitted: b+⌊L/T⌋.
//   - Reaction: ⌊Queue·a/(a−1)⌋+1 units before the first denial, but delays from the second one on.
//   - State: one word, the time at which the queue will be empty. Two when T isn't a whole number of ticks.
//   - Use: to feed something that must not see a burst, when the caller can wait. The longest wait is Queue·T.
//   - Source: A. S. Tanenbaum, "Computer Networks", third edition, 1996, on traffic shaping.
const LeakyQueue Algorithm = "leaky-queue"

// Cooldown keeps a score per key: a point in time that each unit moves on by T, from now if it had passed. A
// request is denied if its score would be more than Period ahead of now. It is [GCRA] with a burst of Count. The
// published version moves a score on from a little before now after a pause, and so lets Count+1 pass at once; this
// one lets Count.
//
//   - Bound: q+⌊L/T⌋ in any closed interval.
//   - Reaction: ⌊(q−1)·a/(a−1)⌋+1 units.
//   - State: one word, the score. Two when T isn't a whole number of ticks.
//   - Use: for actions of people: attempts to log in, messages, votes.
//   - Source: "Simple Cooldown and Rate Control Algorithm", bravenewmethod.com, 2013.
const Cooldown Algorithm = "cooldown"

// MinInterval admits a unit if the last one admitted lies at least T back. It is [GCRA] with a burst of 1; a
// request that costs more than 1 never passes.
//
//   - Bound: 1+⌊L/T⌋ in any closed interval; so q in a half-open window, q+1 in a closed one.
//   - Reaction: 1 unit.
//   - State: one word, the time of the next admission. Two when T isn't a whole number of ticks.
//   - Use: for jobs and polls of one's own, whose pace is known. Clients whose requests arrive in pairs, as
//     browsers' do, lose every second one.
//   - Source: the ATM Forum's peak cell rate, which is GCRA without tolerance (see [GCRA]), 1996.
const MinInterval Algorithm = "min-interval"

// RefillBucket is a bucket of Burst tokens, which starts full and gains Count at once at the end of each Period. The
// periods start when a full bucket is first taken from. A denial takes nothing and moves no refill.
//
//   - Bound: max(b+q⌊L/w⌋, b−1+q⌈L/w⌉) in any closed interval, for Burst ≥ Count; so b+q−1 in a half-open
//     window, b+q in a closed one. Nearly b and q may come next to each other, on both sides of a refill.
//   - Reaction: b units within the first Period.
//   - State: two words, the last refill counted and the tokens missing.
//   - Use: for allowances that people read as "so many a day, saved up to so many".
//   - Source: Y. Xu, "High-performance rate limiting", Smyte, 2016.
const RefillBucket Algorithm = "refill-bucket"

// FixedWindow counts the units of the current window, of a grid of windows of one Period that is aligned to the Unix
// epoch, and denies what would bring the count above Count.
//
//   - Bound: q+q⌈L/w⌉ in any closed interval; so 2q in any window, and in an instant: q just before an edge of the
//     grid and q just after.
//   - Reaction: q units, or 2q if an edge comes between.
//   - State: two words, the window's index and its count.
//   - Use: for quotas and bills by the hour or by the day (UTC), where everybody knows when the count starts anew.
//   - Source: N. Mahdi, "An alternative approach to rate limiting", Figma, 2017, which says why not, too.
const FixedWindow Algorithm = "fixed-window"

// QuotaReset is [FixedWindow] with windows of the key's own: one starts with the first request admitted after the
// last one ended.
//
//   - Bound: max(q+q⌊L/w⌋, q−1+q⌈L/w⌉) in any closed interval; so 2q−1 in a half-open window, 2q in a closed one.
//   - Reaction: q units.
//   - State: two words, the window's start and its count.
//   - Use: for quotas, without an edge that all clients share and rush to.
//   - Source: T. Finch, "hybrid quota-linear rate limiter", dotat.at, 2026, in its section on quota resets.
const QuotaReset Algorithm = "quota-reset"

// SlidingLog remembers when each unit was admitted and denies what would bring the last window, (now−Period, now],
// above Count. A unit exactly one Period old is gone.
//
//   - Bound: q in any half-open window, exactly; q+q⌊L/w⌋ in any closed interval, so 2q in a closed window: q at
//     its first instant, q at its last.
//   - Reaction: q units.
//   - State: two words for each instant at which units of the last window were admitted: up to 2q. Count is at
//     most [MaxLogCount].
//   - Use: where the quota is small and must be exact: passwords, payments, messages that cost money.
//   - Source: "How to Design a Scalable Rate Limiting Algorithm", Kong, 2017.
const SlidingLog Algorithm = "sliding-log"

// SlidingWindow estimates the last window's units from the counts of two windows of a grid aligned to the Unix
// epoch: the current one's, and the previous one's times the part of it that the sliding window still covers. It
// denies what would bring the estimate above Count; the comparison is exact, nothing is rounded in anybody's favour.
//
//   - Bound: 2q−1 in any window, half-open or closed; not more than q at one instant.
//   - Reaction: q to 2q−1 units, by where in the grid the client starts; q within one window of the grid.
//   - State: three words, the window's index and the two counts.
//   - Use: for large quotas that should slide, in constant space. A client whose units of the previous window all came
//     early is held back longer than [SlidingLog] would.
//   - Source: J. Desgats, "How we built rate limiting capable of scaling to millions of domains", Cloudflare, 2017.
const SlidingWindow Algorithm = "sliding-window"

// SlidingBuckets cuts the Period into Cells cells of a grid aligned to the Unix epoch, and counts the current cell
// and the Cells before it: more than one window. It denies what would bring the sum above Count.
//
//   - Bound: q in any window, half-open or closed; with cells of d = w/Cells, q⌈(L+d)/(w+d)⌉ in any closed interval.
//   - Reaction: q units.
//   - State: Cells+2 words, the newest cell's index and a count for each cell. Cells is at most [MaxCells].
//   - Use: where no window may ever hold more than the quota, and it is too large for [SlidingLog]. The price is up
//     to one cell of extra waiting; more cells make it less.
//   - Source: N. Mahdi, "An alternative approach to rate limiting", Figma, 2017, with one cell more.
const SlidingBuckets Algorithm = "sliding-buckets"

// Hybrid is quota and rate in turn. A key starts bursty, under [QuotaReset]. When it takes exactly the last unit of
// its quota it becomes smooth: under [GCRA] with a burst of Count, and in debt so that the next unit passes when the
// window has ended, then one each T. When the debt is paid it is as new. A cost above what is left is denied and
// changes nothing. A key that takes the whole quota with its first request, so also any key of a Count of 1, stays
// bursty: in the source, too, starting anew comes before the test for the last unit.
//
//   - Bound: 2q−1 in any window at a cost of 1 each (for q ≥ 2); 2q in a closed one at other costs.
//   - Reaction: q units.
//   - State: three words, the mode with the window's start and count, or with the arrival time and its fraction.
//   - Use: where the first window must not exceed the quota, and heavy clients should come evenly. Its author
//     advises GCRA instead.
//   - Source: T. Finch, "hybrid quota-linear rate limiter", dotat.at, 2026.
const Hybrid Algorithm = "hybrid"

// Exponential measures the rate of a key, in units per Period, as an exponentially weighted moving average, and denies
// what would bring it above Count. After dt, with x = dt/Period, a request of cost c makes the rate r into
// r·e^−x + c·(1−e^−x)/x, or c if that is more. Denied requests don't count, unless Strict: then a client that keeps
// asking too often stays out until it asks less.
//
//   - Bound: q+⌊L/T⌋ in any closed interval.
//   - Reaction: a·q·ln(a/(a−1)) units, rounded down: just above the limit much sooner than a token bucket, 2.6q
//     against 11q at 1.1 times it.
//   - State: two words, the last request's time and the rate.
//   - Use: where the measured rate is worth knowing, or a client should have to slow down, not only wait (strict).
//     It computes in float64, in a fixed order of operations; Count is at most [MaxRateCount].
//   - Source: T. Finch, "exponential rate limiting", dotat.at, 2024, after his ratelimit in the Exim mail server.
const Exponential Algorithm = "exponential"

// Calendar counts the units of the current day, week, month or year of a calendar, in a time zone, and denies what would
// bring the count above Count. It is [FixedWindow] on the grid that people live by: a day has 23 to 25 hours, a month 28 to 31 days. What is
// a window's first instant where clocks are set is said at [Unit].
//
//   - Bound: 2q in any interval that is shorter than the shortest window: q just before an edge of the grid and q just after.
//   - Reaction: q units, or 2q if an edge comes between.
//   - State: two words, the window's first instant and its count.
//   - Use: for quotas that are sold by the month, and those that people read on a calendar or a bill.
//   - Source: E. M. Reingold and N. Dershowitz, "Calendrical Calculations", 1997, on units of unequal length; the time zones are IANA's.
const Calendar Algorithm = "calendar"

// Concurrent admits a unit if fewer than Count are in flight. Each is in flight until it is released, with a [Cancel] of its End, or
// its lease of Period is over because who held it has died. It is [SlidingLog] with units that are given back, and its
// RetryAfter is when the oldest lease ends: a release may make room sooner.
//
//   - Bound: q in flight, of those that are released or renewed within their lease; q admitted in any lease without a release.
//   - Reaction: q units.
//   - State: two words for each instant at which units in flight were admitted: up to 2q. Count is at most [MaxLogCount].
//   - Use: where the work is what must be bounded, not how often it begins: uploads, reports, connections to a database.
//   - Source: C. Gray and D. Cheriton, "Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache Consistency", 1989.
const Concurrent Algorithm = "concurrent"

// All lists every algorithm, in the order in which the documentation presents them.
func All() []Algorithm {
	return []Algorithm{
		TokenBucket, GCRA, LeakyBucket, LeakyQueue, Cooldown, MinInterval, RefillBucket,
		FixedWindow, QuotaReset, SlidingLog, SlidingWindow, SlidingBuckets, Hybrid, Exponential,
		Calendar, Concurrent,
	}
}

// Linear reports whether the algorithm is of the linear family, whose state is a theoretical arrival time.
func (a Algorithm) Linear() bool {
	switch a {
	case "", TokenBucket, GCRA, LeakyBucket, LeakyQueue, Cooldown, MinInterval:
		return true
	}
	return false
}
