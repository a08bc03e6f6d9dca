package grpclimit

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
)

// unsent is the error of a call that a Client has not sent. It is a status, and also what it wraps.
type unsent struct {
	status *status.Status
	cause  error
}

// Error implements error.
func (e *unsent) Error() string { return e.status.Err().Error() }

// GRPCStatus tells package status.
func (e *unsent) GRPCStatus() *status.Status { return e.status }

// Unwrap returns the cause.
func (e *unsent) Unwrap() error { return e.cause }

// unpaced is for a call that could not wait.
func unpaced(err error) error {
	code := codes.Unavailable
	var capacity *weir.CapacityError
	var cost *weir.CostError
	var option *admission.OptionError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.As(err, &capacity), errors.As(err, &option):
		code = codes.FailedPrecondition
	case errors.As(err, &cost):
		code = codes.InvalidArgument
	}
	return &unsent{status.New(code, "grpclimit: the call was not sent: "+err.Error()), err}
}

// askedToWait is for a call whose server has asked for a longer wait than it may have.
func askedToWait(wait time.Duration) error {
	return detailed(codes.ResourceExhausted, "grpclimit: the call was not sent: its server takes no such call for "+wait.Round(time.Millisecond).String(), retryInfo(wait))
}

// endOf is why a wait under ctx was not to its end: ctx has ended, or will have before it.
func endOf(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.DeadlineExceeded
}
