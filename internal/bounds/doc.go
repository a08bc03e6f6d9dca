// Package bounds recomputes, from the algorithms themselves, what each of them admits at worst, how soon it
// reacts, and how much state it keeps. The table of docs/algorithms.md is its output; `weir bounds` prints it.
//
// What is admitted at worst is found by exhaustive search: q = 3 units per window of w = 6 and of w = 12 ticks,
// every pattern of requests on the grid of ticks, windows of every length up to 2w at every phase, after three
// windows of every possible history. Each result must equal the formula that the table shows.
package bounds
