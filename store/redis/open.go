package redis

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/panics"
)

// DefaultDialTimeout is how long a connection may take with a URL that does not say.
const DefaultDialTimeout = 5 * time.Second

// Open connects to the server of a URL, and checks it (see [Store.Check]):
//
//	redis://[user:password@]host[:port][/db]
//	redis+cluster://[user:password@]host[:port],host[:port]
//	redis+sentinel://[user:password@]host[:port],host[:port]/name[/db]
//
// and rediss, rediss+cluster and rediss+sentinel for TLS. The hosts are, in turn: the server; some nodes of the cluster; the
// sentinels, with the name that they call the master by. The port is 6379, or 26379 for sentinels, unless the URL says. Parameters
// may follow: timeout=1s, dial_timeout=5s, prefix=weir, client_name=...; with TLS ca=file, cert=file, key=file,
// server_name=..., insecure_skip_verify=true; with sentinels sentinel_user=..., sentinel_password=.... What the options say, counts.
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
	s := &Store{server: strings.Join(a.client.InitAddress, ",")}
	client, err := dial(ctx, a.client, o.Timeout)
	if err != nil {
		return nil, s.fail("open", nil, err)
	}
	s, err = New(client, o)
	if err == nil {
		s.owned, s.server = true, strings.Join(a.client.InitAddress, ",")
		err = s.Check(ctx)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

// dial makes a client, which connects.
func dial(ctx context.Context, o rueidis.ClientOption, timeout time.Duration) (rueidis.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Dialer.Timeout == 0 {
		o.Dialer.Timeout = DefaultDialTimeout
	}
	// A connection that does not answer is given up, some time after the operations on it were.
	o.ConnWriteTimeout = max(timeout, DefaultTimeout) + time.Second
	o.PipelineMultiplex = 1 // two connections: what asks at one time shares them, and the more do, the fewer system calls each takes
	type result struct {
		client rueidis.Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = panics.Catch(func() (err error) {
			r.client, err = rueidis.NewClient(o)
			return err
		})
		done <- r
	}()
	select {
	case r := <-done:
		panics.Raise(r.err)
		return r.client, r.err
	case <-ctx.Done():
		go func() { // it can't be told to stop
			if r := <-done; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}
