package grpclimit

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/internal/pacing"
)

// A clientCall is one call of a client, however many times it is sent.
type clientCall struct {
	client      *Client
	server      string // what servers say is kept under it
	key, method string
	ticket      pacing.Ticket
}

func (c *Client) call(ctx context.Context, target, method string) *clientCall {
	key := c.opts.Key(ctx, target, method)
	return &clientCall{client: c, server: method + " " + key, key: key, method: method}
}

// begin waits until the call may be sent: by what the server has said, and if it is paced, by the limiter. What the server says in the meantime stands too.
func (p *clientCall) begin(ctx context.Context, message any, paced bool) error {
	c := p.client
	for {
		if err := c.servers.Enter(ctx, p.server, p.rest(), &p.ticket); err != nil {
			return unheeded(err)
		}
		if !paced {
			return nil
		}
		cost, err := p.paceOrLeave(ctx, message)
		if err != nil {
			return err
		}
		if c.servers.Confirm(&p.ticket) {
			return nil
		}
		_, _ = c.opts.Limiter.Refund(context.WithoutCancel(ctx), p.key, cost) // what was taken for nothing comes back by itself
	}
}

// rest is what is left of MaxWait.
func (p *clientCall) rest() time.Duration { return max(0, p.client.opts.MaxWait-p.ticket.Waited()) }

// paceOrLeave waits for the limiter. If the call does not pass, not even by a panic, its ticket is given back.
func (p *clientCall) paceOrLeave(ctx context.Context, message any) (cost int64, err error) {
	passes := false
	defer func() {
		if !passes {
			p.client.servers.Leave(&p.ticket)
		}
	}()
	cost, err = p.pace(ctx, message)
	passes = err == nil
	return cost, err
}

// pace waits for the limiter. If that has been set to a concurrent limit since, nothing is sent: what was taken of it would be taken for as long as a lease.
func (p *clientCall) pace(ctx context.Context, message any) (cost int64, err error) {
	opts := &p.client.opts
	cost = 1
	if opts.Cost != nil {
		cost = opts.Cost(ctx, p.method, message)
	}
	if limit := opts.Limiter.Limit(); limit.Algorithm == weir.Concurrent {
		return 0, unpaced(&admission.OptionError{Field: "Limiter", Value: limit.String(), Accept: noPace})
	}
	if err := opts.Limiter.Wait(ctx, p.key, cost); err != nil {
		return 0, unpaced(err)
	}
	return cost, nil
}

// send sends a unary call, and keeps what the answer says. It reports whether the call is one to send again: its refusal says when, and it can wait so long.
func (p *clientCall) send(ctx context.Context, invoke func(...grpc.CallOption) error) (again bool, err error) {
	var head, trailer metadata.MD
	returned := false
	defer func() {
		if !returned {
			p.client.servers.Leave(&p.ticket)
		}
	}()
	err = invoke(grpc.Header(&head), grpc.Trailer(&trailer))
	returned = true
	refused, until := p.answered(err, head, trailer)
	return refused && pacing.TooLong(ctx, time.Until(until), p.rest()) == nil, err
}

// answered keeps what the answer to the call says. It reports whether it is a refusal that says when the call can pass, and until when nothing is to be sent.
func (p *clientCall) answered(err error, head, trailer metadata.MD) (refused bool, until time.Time) {
	response := responseOf(err, head, trailer)
	until = p.client.servers.Answered(&p.ticket, response)
	return response.Report.Retry && (response.Outcome == pacing.Denied || response.Outcome == pacing.Busy), until
}
