package guard

import (
	"sync/atomic"
	"time"
)

// A Reason is why a connection was refused or cut.
type Reason int

// The first three are reasons to refuse a connection, the rest to cut a connection.
const (
	Total      Reason = iota // there are as many connections as there may be
	Address                  // there are as many of the address as there may be
	Handshakes               // there are as many TLS handshakes as there may be
	Unfinished               // a command or a request did not arrive in time
	Idle                     // nothing was received for the idle timeout
	Unread                   // the client did not read in time
	Memory                   // buffers would take more memory than they may
	HTTP                     // an HTTP request arrived at the port of another protocol
	TLS                      // a TLS handshake arrived at a port without TLS
	Plain                    // a client without TLS connected to a port with TLS
	Handshake                // the TLS handshake failed, or was not over in time
	Login                    // the connection had no user in time
	Panic                    // the connection's code panicked
	reasons
)

var reasonNames = [reasons]string{
	"total", "address", "handshakes", "unfinished", "idle", "unread", "memory", "http", "tls", "plain", "handshake", "login", "panic",
}

// String returns the reason's name in the log and in the metrics.
func (r Reason) String() string { return reasonNames[r] }

// Refuses reports whether connections are refused for the reason, rather than cut.
func (r Reason) Refuses() bool { return r <= Handshakes }

// Counts are how many connections were refused or cut, by reason.
type Counts [reasons]int64

// Plus returns the sums of two counts.
func (c Counts) Plus(other Counts) Counts {
	for r, n := range other {
		c[r] += n
	}
	return c
}

// Refused returns the number of refused connections.
func (c Counts) Refused() int64 { return c[Total] + c[Address] + c[Handshakes] }

// Cut returns the number of cut connections.
func (c Counts) Cut() (n int64) {
	for _, count := range c[Handshakes+1:] {
		n += count
	}
	return n
}

// A counter counts the connections for a reason.
type counter struct {
	all    atomic.Int64
	logged atomic.Int64 // how many there were at the last line in the log
	sample Sampler
}

// Counts returns the counts since the guard was made.
func (g *Guard) Counts() (c Counts) {
	for r := range c {
		c[r] = g.counts[r].all.Load()
	}
	return c
}

// Count counts a refused or cut connection from an address, and logs a sample with the attributes.
func (g *Guard) Count(why Reason, from string, attributes ...any) {
	c := &g.counts[why]
	n := c.all.Add(1)
	if !c.sample.Pass(time.Now()) {
		return
	}
	message := "connections are cut"
	if why.Refuses() {
		message = "connections are refused"
	}
	g.options.Log.Warn(message, append([]any{"protocol", g.options.Protocol, "reason", why.String(), "address", from,
		"count", n - c.logged.Swap(n)}, attributes...)...)
}

// quietTime is the least time between two lines in the log.
const quietTime = 10 * time.Second

// A Sampler passes few of many events, so clients can't fill the log. The zero Sampler is ready. It
// may be used by many goroutines at once.
type Sampler struct{ last atomic.Int64 }

// Pass reports whether to log an event at a time: at most one in ten seconds.
func (s *Sampler) Pass(now time.Time) bool { return s.PassWithin(now, quietTime) }

// PassWithin is Pass for at most one event in each time of quiet.
func (s *Sampler) PassWithin(now time.Time, quiet time.Duration) bool {
	n, last := now.UnixNano(), s.last.Load()
	return n-last >= int64(quiet) && s.last.CompareAndSwap(last, n)
}
