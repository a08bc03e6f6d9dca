// Package redis keeps limits in Redis or Valkey: a single server, a cluster, or one that sentinels watch. It needs Redis 6.2 or
// later, or any Valkey.
//
// One script takes every step, on the server and by the server's clock, so that a decision is one command and one round trip
// however many ask at once. The script returns the state that it found; the answer is derived from that here, by the same
// [algorithm.Program] as in memory, and is the same: exact, in whole microseconds.
//
// Bindings with a name keep accounts (see [store.Spec]). One that is another limit's, or has reservations, takes two commands: the step is
// taken here, by [algorithm.Account], and swapped in if nobody came between.
//
// docs/redis.md shows what is kept, which limits are refused, the rights that a user needs, and what a failover can forget.
//
// # Errors
//
// When the server can't be reached there is no decision: an operation ends in an error within [Options.Timeout], or at
// once if a [store.Breaker] has found that the server does not serve. Unless the error says that nothing was taken, nobody knows whether the units were. Nothing is sent twice on its own.
package redis
