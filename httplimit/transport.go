package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/internal/pacing"
)

// DefaultMaxWait is the longest that a Transport lets a server make a request wait, unless TransportOptions say otherwise.
const DefaultMaxWait = time.Minute

// MostRetries is the most Retries that TransportOptions can have.
const MostRetries = 100

// TransportOptions for NewTransport. The zero TransportOptions do what servers say, and pace nothing of themselves.
type TransportOptions struct {
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// Limiter, if not nil, is the pace: each request takes its cost of it before it is sent, and waits for that if it must. Its limit has to stay a rate: requests fail while it is one of
	// concurrency, since nothing would give back what they take.
	Limiter *weir.Limiter
	// Key is who is counted by Limiter. What a server says is kept apart by it too: for a client that is several to a server, because it has several tokens, or for parts of a server
	// that have limits of their own. Nil: the origin of the request, as in "https://example.com:443".
	Key func(*http.Request) string
	// Cost is what a request takes of Limiter; 0 is nothing. Nil: 1.
	Cost func(*http.Request) int64
	// MaxWait is the longest that a server can make a request wait, all its waits together, also those before it is sent again. A request that would have to wait longer is not sent,
	// and is a *WaitError. What it waits for Limiter is not counted. 0: DefaultMaxWait.
	MaxWait time.Duration
	// Retries is how many times a request that was denied is sent again, when it may: if its body can be had again (http.Request.GetBody). One that the server had no capacity for,
	// 503 with Retry-After, must besides be idempotent, or have an Idempotency-Key. If it would have to wait too long for that, or Limiter refuses it, the denial is the answer: of its body
	// the first 64 KiB, if they are there within a quarter of a second.
	Retries int
}

// A Transport is an http.RoundTripper that keeps to limits: to a pace of its own, and to what servers say.
//
//   - After a 429 or 503 with Retry-After, nothing more is sent to that origin before the time is over.
//   - When a server says in RateLimit (or X-RateLimit-*) that nothing is left, nothing is sent before the window that it tells is over. When it says that some is
//     left, no more than that is sent, requests that are under way counted.
//   - After such a pause one request goes, and the others when it is answered, as many as the answer has room for if it tells of the limits that the pause was for; if not, one more for
//     each answer.
//     One that is not answered holds them back for two seconds. However long the server says, after an hour, or MaxWait if that is longer, one request asks again.
//     A pause is up to a tenth longer than the server says, by chance, if there is time for that, so that the clients of a server do not all come back at once.
//   - Those who wait go first come, first served. Who could not be served by the deadline of its context is told so at once, with an error that is [context.DeadlineExceeded],
//     and nothing is sent, or taken of the limiter.
//
// It may be used by many goroutines at once. What servers said is kept in memory for as long as it matters, of a bounded number of origins.
type Transport struct {
	base    http.RoundTripper
	limiter *weir.Limiter
	key     func(*http.Request) string // nil: the origin
	cost    func(*http.Request) int64
	maxWait time.Duration
	retries int
	servers pacing.Servers
}

// errNoTransport is the error of a nil Transport and of the zero Transport.
var errNoTransport = errors.New("httplimit: the Transport is nil or the zero Transport; accepted: a Transport that NewTransport returned")

// NewTransport returns a Transport. It refuses options that make no sense.
func NewTransport(opts TransportOptions) (*Transport, error) {
	refuse := func(field string, value any, accept string) (*Transport, error) {
		return nil, fmt.Errorf("httplimit: TransportOptions.%s is %v; accepted: %s", field, value, accept)
	}
	switch {
	case opts.MaxWait < 0:
		return refuse("MaxWait", opts.MaxWait, "more than 0, or 0 for a minute")
	case opts.Retries < 0 || opts.Retries > MostRetries:
		return refuse("Retries", opts.Retries, fmt.Sprintf("0 to %d", MostRetries))
	case opts.Cost != nil && opts.Limiter == nil:
		return refuse("Cost", "set", "nil without a Limiter, which it is the cost of")
	case opts.Limiter != nil && opts.Limiter.Limit() == weir.Limit{}:
		return refuse("Limiter", "the zero weir.Limiter", "what weir.New returned, or nil for none")
	case opts.Limiter != nil && opts.Limiter.Limit().Algorithm == weir.Concurrent:
		return refuse("Limiter", "of "+opts.Limiter.Limit().String(), "of a limit that is a rate; http.Transport.MaxConnsPerHost bounds what is under way")
	}
	t := &Transport{
		base: opts.Base, limiter: opts.Limiter, key: opts.Key, cost: opts.Cost, maxWait: opts.MaxWait, retries: opts.Retries,
	}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if t.maxWait == 0 {
		t.maxWait = DefaultMaxWait
	}
	return t, nil
}

// CloseIdleConnections closes those of Base, if it has that method.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t == nil || t.base == nil {
		closeBody(r)
		return nil, errNoTransport
	}
	p := passage{t: t, r: r, server: originOf(r), cost: 1}
	p.payer = p.server
	if t.key != nil {
		p.payer = t.key(r)
		p.server += " " + p.payer
	}
	if t.cost != nil {
		p.cost = t.cost(r)
	}
	for p.attempt = 0; ; p.attempt++ {
		if err := p.admit(); err != nil {
			closeBody(p.r)
			if p.denial != nil && p.r.Context().Err() == nil {
				return p.denial, nil
			}
			return nil, err
		}
		answer, again, err := p.send()
		if err != nil || !again {
			return answer, err
		}
	}
}

// A passage is one request on its way, however many times it is sent.
type passage struct {
	t             *Transport
	r             *http.Request // to send next
	server, payer string        // the keys of what the server said, and of the limiter
	cost          int64         // of the limiter
	ticket        pacing.Ticket
	attempt       int
	pause         time.Duration // before it is sent again, of a server that does not say
	paused        time.Duration // all of these so far
	denial        *http.Response
}

// admit waits until the request may be sent: by what the server said, and then at the limiter's pace. What the server says in the meantime stands too.
func (p *passage) admit() error {
	ctx := p.r.Context()
	if err := sleep(ctx, p.pause); err != nil {
		return err
	}
	p.paused += p.pause
	for {
		if err := p.t.servers.Enter(ctx, p.server, p.rest(), &p.ticket); err != nil {
			return err
		}
		if p.t.limiter == nil {
			return nil
		}
		if err := p.pace(ctx); err != nil {
			return err
		}
		if p.t.servers.Confirm(&p.ticket) {
			return nil
		}
		if _, err := p.t.limiter.Refund(context.WithoutCancel(ctx), p.payer, p.cost); err != nil {
			return err
		}
	}
}

// rest is what is left of MaxWait.
func (p *passage) rest() time.Duration { return max(0, p.t.maxWait-p.paused-p.ticket.Waited()) }

// pace waits for the limiter. If it does not pass, not even by a panic, the ticket is given back.
func (p *passage) pace(ctx context.Context) error {
	passes := false
	defer func() {
		if !passes {
			p.t.servers.Leave(&p.ticket)
		}
	}()
	if limit := p.t.limiter.Limit(); limit.Algorithm == weir.Concurrent {
		return fmt.Errorf("httplimit: the Transport's Limiter has become one of %s; accepted: a limit that is a rate", limit)
	}
	err := p.t.limiter.Wait(ctx, p.payer, p.cost)
	passes = err == nil
	return err
}

// send sends the request, and keeps what the answer says. It reports whether the request is to be sent again: then the answer is kept as the denial.
func (p *passage) send() (answer *http.Response, again bool, err error) {
	answer, report, until, err := p.ask()
	if err != nil {
		return answer, false, err
	}
	if p.attempt >= p.t.retries || !mayRepeat(p.r, answer.StatusCode, report.Retry) {
		return answer, false, nil
	}
	wait := time.Until(until)
	p.pause = 0
	if until.IsZero() {
		p.pause = backOff(p.attempt)
		wait = p.pause
	}
	if pacing.TooLong(p.r.Context(), wait, p.rest()) == nil {
		if next, err := repeat(p.r); err == nil {
			p.r, p.denial = next, settle(answer)
			return nil, true, nil
		}
	}
	return answer, false, nil
}

// ask sends the request and keeps what the answer says. If there is none, not even because of a panic, the request is no longer under way either.
func (p *passage) ask() (answer *http.Response, report header.Report, until time.Time, err error) {
	var response pacing.Response
	defer func() { until = p.t.servers.Answered(&p.ticket, response) }()
	if answer, err = p.t.base.RoundTrip(p.r); err == nil {
		report = header.Read(answer.Header, time.Now())
		response = pacing.Response{Outcome: outcomeOf(answer.StatusCode), Report: report}
	}
	return answer, report, until, err
}

// A WaitError reports a request that was not sent, because the server had said that it should not be before a time that is too far ahead.
type WaitError = pacing.WaitError

// outcomeOf says what became of a request that was answered.
func outcomeOf(status int) pacing.Outcome {
	switch {
	case status == http.StatusTooManyRequests:
		return pacing.Denied
	case status == http.StatusServiceUnavailable:
		return pacing.Busy
	case status >= http.StatusInternalServerError:
		return pacing.Failed
	}
	return pacing.Served
}

// originOf returns scheme, host and port.
func originOf(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	port := r.URL.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[r.URL.Scheme]
	}
	return r.URL.Scheme + "://" + strings.ToLower(r.URL.Hostname()) + ":" + port
}
