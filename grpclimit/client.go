package grpclimit

import (
	"context"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
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
	// MaxWait is how long a call waits, at most, because its server has said so: it fails at once if that would be longer. 0: DefaultMaxWait.
	MaxWait time.Duration
	// Retries is how often a unary call is sent again whose refusal says when it can pass. 0: it is not.
	Retries int
}

// A Client keeps to a pace, and to what servers say: to the RetryInfo of calls that were refused with RESOURCE_EXHAUSTED or UNAVAILABLE, and to the metadata of answers that say, as
// RateLimit of HTTP does, that nothing is left for now. Calls wait for it, or fail at once if they can't; their error is a status of RESOURCE_EXHAUSTED, with a RetryInfo, or of DEADLINE_EXCEEDED. What
// the server is not asked then it need not refuse. Waits end a little later than they must, each by another time, so that who waits does not come back all at once.
//
// Its methods are interceptors, for any number of connections at once:
//
//	grpc.NewClient(target, grpc.WithUnaryInterceptor(c.Unary), grpc.WithStreamInterceptor(c.Stream))
type Client struct {
	opts  ClientOptions
	words words
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
	key := c.opts.Key(ctx, cc.Target(), method)
	for sent := 0; ; sent++ {
		if err := c.begin(ctx, key, method, request, c.opts.Limiter != nil); err != nil {
			return err
		}
		var head, trailer metadata.MD
		err := invoker(ctx, method, request, reply, cc, slices.Concat(opts, []grpc.CallOption{grpc.Header(&head), grpc.Trailer(&trailer)})...)
		wait, told := c.learn(key, method, err, head, trailer)
		if err == nil || !told || sent >= c.opts.Retries || wait > c.opts.MaxWait || tooLate(ctx, wait) {
			return err
		}
	}
}

// Stream is a grpc.StreamClientInterceptor.
func (c *Client) Stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	key := c.opts.Key(ctx, cc.Target(), method)
	if err := c.begin(ctx, key, method, nil, c.opts.Limiter != nil && !c.opts.PerMessage); err != nil {
		return nil, err
	}
	own, abort := context.WithCancel(ctx)
	s, err := streamer(own, desc, cc, method, opts...)
	if err != nil {
		abort()
		c.learn(key, method, err, nil, nil)
		return nil, err
	}
	return &clientStream{ClientStream: s, client: c, ctx: ctx, abort: abort, single: !desc.ServerStreams, key: key, method: method}, nil
}

// begin waits until a call may be sent: by what the server has said, and if it is paced, by the limiter.
func (c *Client) begin(ctx context.Context, key, method string, message any, paced bool) error {
	if err := c.heed(ctx, key, method); err != nil || !paced {
		return err
	}
	cost, err := c.pace(ctx, key, method, message)
	if err != nil {
		return err
	}
	if err := c.heed(ctx, key, method); err != nil { // the server has said more in the meantime
		_, _ = c.opts.Limiter.Refund(context.WithoutCancel(ctx), key, cost) // what was taken for nothing comes back by itself
		return err
	}
	return nil
}

// pace waits for the limiter. If that has been set to a concurrent limit since, nothing is sent: what was taken of it would be taken for as long as a lease.
func (c *Client) pace(ctx context.Context, key, method string, message any) (cost int64, err error) {
	cost = 1
	if c.opts.Cost != nil {
		cost = c.opts.Cost(ctx, method, message)
	}
	if limit := c.opts.Limiter.Limit(); limit.Algorithm == weir.Concurrent {
		return 0, unpaced(&admission.OptionError{Field: "Limiter", Value: limit.String(), Accept: noPace})
	}
	if err := c.opts.Limiter.Wait(ctx, key, cost); err != nil {
		return 0, unpaced(err)
	}
	return cost, nil
}

// heed waits for as long as the server has asked for.
func (c *Client) heed(ctx context.Context, key, method string) error {
	for {
		wait := c.words.wait(scope{key, method})
		switch {
		case wait <= 0:
			return nil
		case wait > c.opts.MaxWait:
			return askedToWait(wait)
		case !pause(ctx, jittered(ctx, wait)):
			return unpaced(endOf(ctx))
		}
	}
}
