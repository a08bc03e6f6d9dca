package grpclimit

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/internal/pacing"
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

// unheeded is for a call that could not wait for as long as its server has asked for, or for those before it.
func unheeded(err error) error {
	var long *pacing.WaitError
	if !errors.As(err, &long) || long.Deadline {
		return unpaced(err)
	}
	s := status.New(codes.ResourceExhausted, "grpclimit: the call was not sent: "+err.Error())
	if long.Wait > 0 {
		if with, failed := s.WithDetails(retryInfo(long.Wait)); failed == nil {
			s = with
		}
	}
	return &unsent{s, err}
}
