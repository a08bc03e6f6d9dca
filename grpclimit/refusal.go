package grpclimit

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
)

// refusal is the status of a call that may not pass, made of our own words alone.
func refusal(ctx context.Context, a *admission.Admission) error {
	switch a.Outcome {
	case admission.Denied:
		return detailed(codes.ResourceExhausted, "too many calls", retryInfo(a.Decision.RetryAfter), violations(a, "The limit is used up for now."))
	case admission.Excessive:
		return detailed(codes.FailedPrecondition, "the call costs more than a limit ever admits", violations(a, "The call costs more than the limit ever admits."))
	case admission.Forbidden:
		return status.Error(codes.PermissionDenied, "the client may make no calls")
	case admission.Invalid:
		return status.Error(codes.InvalidArgument, "the cost of the call, or what it is limited by, makes no sense")
	case admission.Gone:
		return gone(ctx)
	default:
		return detailed(codes.Unavailable, "the limits can't be checked now", retryInfo(a.Decision.RetryAfter))
	}
}

// gone is the status of a call that nobody waits for.
func gone(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = context.Canceled
	}
	return status.FromContextError(err).Err()
}

func detailed(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	s := status.New(code, message)
	if with, err := s.WithDetails(details...); err == nil {
		s = with
	}
	return s.Err()
}

func retryInfo(after time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(max(after, 1))}
}

// violations names the limits that have denied a call.
func violations(a *admission.Admission, description string) *errdetails.QuotaFailure {
	f := &errdetails.QuotaFailure{}
	for s := range a.Each() {
		if a.Outcome == admission.Excessive && s.Decision.RetryAfter != weir.Never || s.Decision.Allowed {
			continue
		}
		f.Violations = append(f.Violations, &errdetails.QuotaFailure_Violation{Subject: s.Name, Description: description})
	}
	return f
}

// mostPushback is how long a call may be kept waiting inside gRPC by its own retries. A longer wait is the caller's to decide on.
const mostPushback = time.Minute

// pushback tells the retries that are built into gRPC when to come back, or not to. It is nothing for answers that they do not retry.
func pushback(a *admission.Admission) metadata.MD {
	if a.Outcome != admission.Denied && a.Outcome != admission.Undecided {
		return nil
	}
	ms := int64(-1)
	if after := a.Decision.RetryAfter; after <= mostPushback {
		ms = int64((after + time.Millisecond - 1) / time.Millisecond)
	}
	return metadata.Pairs("grpc-retry-pushback-ms", strconv.FormatInt(ms, 10))
}
