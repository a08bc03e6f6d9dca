// Package redis keeps limits in Redis or Valkey: a single server, a cluster, or one that sentinels watch. It needs Redis 6.2 or
// later, or any Valkey.
//
// One script carries out the operations, by the server's clock, so a decision is one command and one
// round trip, however many callers ask at once. The script returns the state that it found; Go derives
// the decision from it with the same [algorithm.Program] as in memory: exact, in whole microseconds.
//
// Limits of the algorithms hybrid and exponential take two commands: Go applies the operation to the
// loaded record, and stores the result if the value is still the same (compare-and-swap). So do
// records with reservations, and records of another limit, which bindings with a name may find (see
// [store.Spec]).
//
// docs/redis.md shows what is kept, which limits are refused, the rights that a user needs, and what a failover can forget.
//
// # Errors
//
// When the server can't be reached there is no decision: an operation ends in an error within [Options.Timeout], or at
// once if a [store.Breaker] has found that the server does not serve. Unless the error says that nothing was taken, nobody knows whether the units were. Nothing is sent twice on its own.
package redis
