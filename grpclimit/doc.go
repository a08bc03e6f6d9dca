// Package grpclimit limits gRPC calls. A [Server] has interceptors that serve the calls that a limiter, or a set of policies, lets pass, and refuse others in a way
// that clients of any language understand; a [Client] has interceptors that keep to a pace of their own, and to what servers say.
//
// To what decides, a call is a request of HTTP, which it is on the wire: the method is POST, the path that of the method (/package.Service/Method), the host the authority, and the
// header fields are the call's metadata. So policies and keys say about calls what they say about requests.
//
// A refusal is a status, with what to do about it in its details:
//
//   - RESOURCE_EXHAUSTED: too many; a RetryInfo says when the call can pass, to the nanosecond, and a QuotaFailure which limits have denied it.
//   - FAILED_PRECONDITION: it costs more than a limit ever admits, a QuotaFailure says which; a retry is of no use, and there is no RetryInfo.
//   - PERMISSION_DENIED: the client's plan is deny.
//   - INVALID_ARGUMENT: it makes no sense, such as a cost that is negative.
//   - UNAVAILABLE, with a RetryInfo: the store could not decide, and the limits are not to be broken for that.
//
// To refusals that come to an end within a minute belongs the trailer grpc-retry-pushback-ms too, which the retries heed that are built into gRPC.
package grpclimit
