// Package resp serves decisions over the Redis protocol, RESP2 and RESP3, so that any Redis client is a weir client.
//
// Where the server has users ([Options].Users), a connection logs in with AUTH or HELLO, and each command
// needs a right of its user; the replies are those of Redis.
//
// Its own commands name the limit with each request:
//
//	WEIR.TAKE key "limit text" [COST n] [options]
//	WEIR.TAKEUPTO key "limit text" [COST n] [options]
//	WEIR.TAKEALL key "limit text" [COST n] [NAME name] [ID id LIFE time] [AND key "limit text" ...] [AT time] [NS] [TIME]
//	WEIR.PEEK key "limit text" [options]
//	WEIR.REFUND key "limit text" [COST n] [options]
//	WEIR.CANCEL key "limit text" END time [COST n] [options]
//	WEIR.RENEW key "limit text" END time [COST n] [options]
//	WEIR.RESERVE key "limit text" ID id LIFE time NAME name [COST n] [options]
//	WEIR.COMMIT key "limit text" ID id NAME name [COST n] [LATE] [options]
//	WEIR.RESET key "limit text" [options]
//
// TAKE, PEEK and REFUND answer [allowed 0|1, limit, remaining, retry_after, reset_after, delay],
// the waits in microseconds, rounded up; a retry_after of -1 means never. After a REFUND that is
// what stands then. TAKEUPTO, CANCEL, RENEW, RESERVE and COMMIT add the units granted, given back,
// renewed, reserved, or settled at; a COMMIT without a reservation is denied, or with LATE charged
// in full. A second RESERVE of an ID renews it. TAKEALL answers an array of such decisions: that on
// the request, and one for each part, as RESERVE's if it has an ID, and with its time after TIME.
// RESET answers OK. The cost is 1 where it is not given.
//
// The options are NAME name, the name of the limiter, under which a key has one state whatever the limit; AT time, the time of the request; TIME, by which the reply ends with the time
// at which it took effect; NS, by which all times and waits of the command are in nanoseconds; and DEBT, as store.Spec.TimeDebt has
// it. The END of a CANCEL or RENEW is the TIME of the take and its reset_after.
//
// Where the server has policies ([Options].Policies), they say which limits apply to a request:
//
//	WEIR.CHECK [METHOD m] [HOST h] [PATH p] [QUERY q] [HEADER name value]... [IP address] [ATTR name value]... [COST n] [HOLD milliseconds]
//	WEIR.CHECK.RELEASE token
//	WEIR.CHECK.COMMIT token cost [LATE]
//	WEIR.CHECK.CANCEL token
//	WEIR.CHECK.RENEW token
//
// CHECK answers as TAKE does, and then the names of the policies that denied, the token that settles the request, or an empty text, and for each limit
// [policy, limit text, role, and a decision as TAKE's]. RENEW answers the token that takes the place of the one given, the others OK.
//
// Over a store that waits for an engine ([Options].Waits), the commands of a connection that have arrived together are decided together.
//
// Programs written for other servers find their commands here. Waits are in whole seconds, rounded up:
//
//   - CL.THROTTLE key max_burst count period [quantity], as redis-cell has it: [limited 0|1, max_burst+1, remaining,
//     retry_after, reset_after]. A retry_after of -1 means that the request was admitted, or when it was limited, never.
//   - THROTTLE key max_burst count period [quantity], as throttlecrab has it: [allowed 0|1, max_burst, remaining,
//     reset_after, retry_after]. A retry_after of 0 means that it was admitted, and -1 never. The two commands
//     share the state of a key, whatever the limit.
//   - RL.REDUCE key max refilltime [REFILL n] [TAKE n] [AT unix-seconds] and RL.GET key max refilltime [REFILL n]
//     [AT unix-seconds], as Smyte's ratelimit has them: the tokens before taking. RL.REDUCE takes what is left
//     where that is less than it asks for. RL.PREDUCE and RL.PGET are the same in milliseconds. A key with other
//     parameters is another bucket: that of WEIR.TAKE with the limit text "refill-bucket 2/60s burst=10" for
//     a max of 10, a refilltime of 60 and a REFILL of 2, and with 60ms in place of 60s for RL.PREDUCE and RL.PGET.
//
// AT is refused unless [Options].TrustClientTime.
package resp
