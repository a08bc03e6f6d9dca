package grpclimit

import (
	"context"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/internal/pacing"
)

// DefaultMaxWait is how long a call waits, at most, because its server has said so, unless ClientOptions say otherwise.
const DefaultMaxWait = time.Minute

// ClientOptions are for NewClient. The zero ClientOptions heed what servers say, and have no pace of their own.
type ClientOptions struct {
	// Limiter is the pace: calls wait until they may pass, first in, first out. A call that could not pass before its deadline fails at once, is not sent, and takes nothing. Nil: none.
	Limiter *weir.Limiter
	// Key is what the limiter counts a call under, of the target as the client was made for, and the method in full. What a server says holds for calls of the same key and method.
	// Nil: the target.
	Key func(ctx context.Context, target, method string) string
	// Cost is what a call takes of the limiter. Of a stream the message is nil, unless it is of PerMessage. Nil: 1.
	Cost func(ctx context.Context, method string, message any) int64
	// PerMessage makes each message that is sent on a stream wait for the limiter, in place of the stream.
	PerMessage bool
	// MaxWait is how long a call waits, at most, because its server has said so, all its waits together, also those before it is sent again: it fails at once if that would be longer.
	// What it waits for Limiter is not counted. 0: DefaultMaxWait.
	MaxWait time.Duration
	// Retries is how often a unary call is sent again whose refusal says when it can pass. 0: it is not.
	Retries int
}

// A Client keeps to a pace, and to what servers say: to the RetryInfo of calls that were refused with RESOURCE_EXHAUSTED or UNAVAILABLE, and to the metadata of answers that say, as
// RateLimit of HTTP does, how much is left for how long. Calls wait for it, first in, first out, or fail at once if they can't; their error is a status of RESOURCE_EXHAUSTED, with a RetryInfo,
// or of DEADLINE_EXCEEDED. What the server is not asked then it need not refuse. After such a wait one call goes first, and the others follow as it is answered. Waits end a little later than
// they must, if there is time for that, each by another time, so that the clients of a server do not come back all at once.
//
// Its methods are interceptors, for any number of connections at once:
//
//	grpc.NewClient(target, grpc.WithUnaryInterceptor(c.Unary), grpc.WithStreamInterceptor(c.Stream))
type Client struct {
	opts    ClientOptions
	servers pacing.Servers
}

// NewClient returns a Client. It returns an error, an *admission.OptionError, for options that make no sense.
func NewClient(opts ClientOptions) (*Client, error) {
	switch {
	case opts.MaxWait < 0:
		return nil, &admission.OptionError{Field: "MaxWait", Value: opts.MaxWait.String(), Accept: "0, or how long a call may wait"}
	case opts.Retries < 0:
		return nil, &admission.OptionError{Field: "Retries", Value: strconv.Itoa(opts.Retries), Accept: "0 or more"}
	case opts.Limiter == nil && (opts.PerMessage || opts.Cost != nil):
		return nil, &admission.OptionError{Field: "Limiter", Value: "nil", Accept: "a limiter, which PerMessage and Cost are for"}
	case opts.Limiter != nil && opts.Limiter.Limit() == weir.Limit{}:
		return nil, &admission.OptionError{Field: "Limiter", Value: "the zero weir.Limiter", Accept: "what weir.New returned, or nil for none"}
	case opts.Limiter != nil && opts.Limiter.Limit().Algorithm == weir.Concurrent:
		return nil, &admission.OptionError{Field: "Limiter", Value: opts.Limiter.Limit().String(), Accept: noPace}
	}
	if opts.MaxWait == 0 {
		opts.MaxWait = DefaultMaxWait
	}
	if opts.Key == nil {
		opts.Key = func(_ context.Context, target, _ string) string { return target }
	}
	return &Client{opts: opts}, nil
}

const noPace = "a limit of a rate: nothing gives back what a call takes"

// Unary is a grpc.UnaryClientInterceptor.
func (c *Client) Unary(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	p := c.call(ctx, cc.Target(), method)
	var refused error
	for sent := 0; ; sent++ {
		if err := p.begin(ctx, request, c.opts.Limiter != nil); err != nil {
			if refused != nil && ctx.Err() == nil {
				return refused // it can't wait for another try
			}
			return err
		}
		again, err := p.send(ctx, func(more ...grpc.CallOption) error {
			return invoker(ctx, method, request, reply, cc, slices.Concat(opts, more)...)
		})
		if !again || sent >= c.opts.Retries {
			return err
		}
		refused = err
	}
}

// Stream is a grpc.StreamClientInterceptor.
func (c *Client) Stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	p := c.call(ctx, cc.Target(), method)
	if err := p.begin(ctx, nil, c.opts.Limiter != nil && !c.opts.PerMessage); err != nil {
		return nil, err
	}
	s := &clientStream{call: p, ctx: ctx, single: !desc.ServerStreams}
	own, abort := context.WithCancel(ctx)
	s.abort = abort
	begun := false
	defer func() {
		if !begun { // it panics, or has an error
			abort()
			c.servers.Leave(&p.ticket)
		}
	}()
	var err error
	if s.ClientStream, err = streamer(own, desc, cc, method, opts...); err != nil {
		p.answered(err, nil, nil)
		return nil, err
	}
	begun = true
	s.awaited = time.AfterFunc(longestAwaited, func() { c.servers.Leave(&p.ticket) })
	return s, nil
}
