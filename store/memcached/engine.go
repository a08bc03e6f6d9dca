package memcached

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// engine is the [swap.Engine] on memcached.
type engine struct {
	client  *memcache.Client
	servers servers
	timeout time.Duration
	now     func() time.Time
	largest atomic.Int64 // bytes that a state may have
}

func newEngine(addrs []addr, o Options) *engine {
	e := &engine{servers: newServers(addrs, o.Connections), timeout: o.Timeout, now: o.now}
	e.client = memcache.NewFromSelector(e.servers)
	e.client.Timeout, e.client.MaxIdleConns = o.Timeout, o.Connections
	e.largest.Store(defaultItemSize - overhead)
	return e
}

// Slot implements [swap.Slotter]: memcached swaps one record at a time.
func (e *engine) Slot(string) int { return -1 }

// Compile implements [swap.Compiler]. It refuses logs whose state might not fit into an item.
func (e *engine) Compile(spec store.Spec, _ *algorithm.Program) (any, error) {
	l, most := spec.Limit, e.largest.Load()/logEntry
	if (l.Algorithm == algorithm.SlidingLog || l.Algorithm == algorithm.Concurrent) && l.Count > most {
		return nil, &algorithm.LimitError{
			Field: "count", Value: strconv.FormatInt(l.Count, 10),
			Accept: fmt.Sprintf("1 to %d for %s in this memcached, so that the state fits into an item", most, l.Algorithm),
		}
	}
	return nil, nil //nolint:nilnil // nothing is prepared
}

// Load implements [swap.Engine].
func (e *engine) Load(ctx context.Context, keys []swap.Key) ([]swap.Cell, error) {
	name := keys[0].Name
	var item *memcache.Item
	get := func() (err error) { item, err = e.client.Get(name); return err }
	err := e.use(ctx, name, func() error {
		err := get()
		if hungUp(err) { // the server has restarted: all its connections are dead
			_ = e.client.Close()
			err = get()
		}
		if errors.Is(err, memcache.ErrCacheMiss) {
			item, err = nil, nil
		}
		return err
	})
	cell := swap.Cell{Token: item, Now: e.now().UnixMicro()}
	if err == nil && item != nil {
		cell.Record, cell.Foreign = parseRecord(item.Value)
	}
	return []swap.Cell{cell}, err
}

// Swap implements [swap.Engine]. The item's CAS number decides whether it is still the loaded one.
func (e *engine) Swap(ctx context.Context, changes []swap.Change) (swapped bool, err error) {
	c := changes[0]
	item := &memcache.Item{Key: c.Name, Value: formatRecord(c.Next), Expiration: expiration(e.now(), c.Life)}
	if size, most := int64(len(item.Value)), e.largest.Load()+plainHead; size > most {
		return false, fmt.Errorf("memcached: a state has %d bytes, with its reservations; accepted: up to %d, which fit into an item (-I); %w",
			size, most, swap.ErrNothingDone)
	}
	write := e.client.Add
	if loaded := c.Old.Token.(*memcache.Item); loaded != nil { //nolint:forcetypeassert // it is Load's
		item.CasID, write = loaded.CasID, e.client.CompareAndSwap
	}
	if c.Next.Empty() {
		item.Expiration = -1 // at once, as a compare-and-delete would
	}
	err = e.use(ctx, c.Name, func() error {
		err := write(item)
		// It changed, or is there, or is there no more.
		if swapped = err == nil; errors.Is(err, memcache.ErrCASConflict) || errors.Is(err, memcache.ErrNotStored) || errors.Is(err, memcache.ErrCacheMiss) {
			err = nil
		}
		if refused(err) {
			err = fmt.Errorf("%w; %w", err, swap.ErrNothingDone)
		}
		return err
	})
	return swapped, err
}

// refused reports whether the server refused a write, as when it has no memory left. The client
// returns ErrServerError only for a reply without a text.
func refused(err error) bool {
	return errors.Is(err, memcache.ErrServerError) || err != nil && strings.Contains(err.Error(), `: "SERVER_ERROR `)
}

// use calls f, which speaks to the server of a name, when there are not too many that do.
func (e *engine) use(ctx context.Context, name string, f func() error) error {
	s := e.servers.of(name)
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return fmt.Errorf("memcached: %s: %d connections are busy: %w; %w", s.text, cap(s.busy), ctx.Err(), swap.ErrNothingDone)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memcached: %s: %w; %w", s.text, err, swap.ErrNothingDone)
	}
	if err := f(); err != nil {
		if isDial(err) && !errors.Is(err, swap.ErrNothingDone) {
			return fmt.Errorf("memcached: %s: %w; %w", s.text, err, swap.ErrNothingDone)
		}
		if isTimeout(err) {
			return fmt.Errorf("memcached: %s: %w: %w", s.text, context.DeadlineExceeded, err)
		}
		return fmt.Errorf("memcached: %s: %w", s.text, err)
	}
	return nil
}

// isDial reports whether an error is of a connection that was not made.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, slow := errors.AsType[*memcache.ConnectTimeoutError](err)
	return slow || ok && op.Op == "dial"
}

// isTimeout reports whether the time of a command was over. The client has it end a moment before
// its context does.
func isTimeout(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	return ok && network.Timeout()
}

// classify returns the cause of an error.
func classify(err error) store.Cause {
	_, isNetwork := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, swap.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, store.ErrUnnamed), errors.Is(err, store.ErrClientTime):
		return store.CauseCaller
	case isDial(err), errors.Is(err, errUnconnected):
		return store.CauseConnection
	case isTimeout(err):
		return store.CauseTimeout
	case isNetwork, hungUp(err), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return store.CauseLost
	}
	return store.CauseRejection
}

// hungUp reports whether an error is of a connection that the other side has ended.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
