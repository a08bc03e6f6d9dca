package grpclimit

import (
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/internal/pacing"
)

// responseOf returns the report of an answer on when to send more: a RetryInfo, or fields of HTTP.
func responseOf(err error, head, trailer metadata.MD) pacing.Response {
	response := pacing.Response{Outcome: outcomeOf(status.Code(err)), Report: read(head, trailer)}
	if wait, ok := retryInfoOf(err); ok {
		response.Report.Retry, response.Report.RetryAfter = true, wait
	}
	if response.Outcome == pacing.Denied && !response.Report.Retry && len(response.Report.Limits) == 0 {
		response.Outcome = pacing.Failed // it is not known to be of a limit: a message that is too large has that code too
	}
	return response
}

// outcomeOf returns the outcome of a call with a code.
func outcomeOf(code codes.Code) pacing.Outcome {
	switch code {
	case codes.ResourceExhausted:
		return pacing.Denied
	case codes.Unavailable:
		return pacing.Busy
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange:
		return pacing.Served
	default:
		return pacing.Failed
	}
}

// retryInfoOf returns the retry_delay of an error.
func retryInfoOf(err error) (time.Duration, bool) {
	if err == nil {
		return 0, false
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().IsValid() {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

// read reads the fields of HTTP that an answer's metadata has. Of an answer without messages, gRPC gives its header as its trailer.
func read(mds ...metadata.MD) header.Report {
	var h http.Header
	for _, md := range mds {
		for _, name := range [...]string{"ratelimit", "ratelimit-policy", "retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} {
			if values := md[name]; len(values) > 0 {
				if h == nil {
					h = http.Header{}
				}
				h[http.CanonicalHeaderKey(name)] = values
			}
		}
	}
	if h == nil {
		return header.Report{}
	}
	return header.Read(h, time.Now())
}
