package redis

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/redisconn"
	"github.com/weirlimit/weir/store"
)

// Open connects to the server of a URL, and checks it (see [Store.Check]), unless Options.Lazy is true:
//
//	redis://[user:password@]host[:port][/db]
//	redis+cluster://[user:password@]host[:port],host[:port]
//	redis+sentinel://[user:password@]host[:port],host[:port]/name[/db]
//
// and rediss, rediss+cluster and rediss+sentinel for TLS. The hosts are, in turn: the server; some nodes of the cluster; the
// sentinels, with the name that they call the master by. The port is 6379, or 26379 for sentinels, unless the URL says. Parameters
// may follow: timeout=1s, dial_timeout=1s, max_calls=2048, lazy=true, prefix=weir, client_name=...; with TLS ca=file, cert=file,
// key=file, server_name=..., insecure_skip_verify=true; with sentinels sentinel_user=..., sentinel_password=.... What the
// options say, counts. A connection may take as long as an operation, and a second at least, unless the URL says.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	a, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if o.Prefix == "" {
		o.Prefix = a.prefix
	}
	if o.Timeout == 0 {
		o.Timeout = a.timeout
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = a.maxCalls
	}
	o.Lazy = o.Lazy || a.lazy
	s, err := newStore(strings.Join(a.client.InitAddress, ","), a.cluster, o)
	if err != nil {
		return nil, err
	}
	s.own = &redisconn.Connector{Option: s.clientOption(a.client, o.MaxCalls)}
	if o.Lazy {
		s.breaker.Trip(s.whole, errUnconnected)
		return s, nil
	}
	if err = s.connect(ctx); err == nil {
		err = s.Check(ctx)
	} else {
		err = s.fail("open", nil, err)
	}
	if err == nil {
		if e := s.readNodes(ctx); e != nil { // the cluster is one circuit, until a probe finds its nodes
			s.failures.Add(1)
		}
		return s, nil
	}
	_ = s.Close() // it returns no error
	return nil, err
}

// connect makes the client if there is none.
func (s *Store) connect(ctx context.Context) error {
	if s.client.Load() != nil {
		return nil
	}
	c, err := s.own.Connect(ctx)
	if err != nil {
		return err
	}
	s.client.Store(&client{c})
	return nil
}

// clientOption completes the options of a client.
func (s *Store) clientOption(o rueidis.ClientOption, maxCalls int) rueidis.ClientOption {
	o.ConnWriteTimeout = max(s.timeout, time.Second) // and the pause after which a connection that does not answer is given up
	if o.Dialer.Timeout == 0 {
		o.Dialer.Timeout = o.ConnWriteTimeout
	}
	if o.Sentinel.Dialer.Timeout == 0 {
		o.Sentinel.Dialer.Timeout = o.Dialer.Timeout
	}
	o.DialCtxFn = s.conns.Dial
	o.PipelineMultiplex = 1 // two connections: what asks at one time shares them, and the more do, the fewer system calls each takes
	if maxCalls == 0 {
		maxCalls = store.DefaultMaxCalls
	}
	o.RingScaleEachConn = redisconn.RingScale(maxCalls)
	return o
}
