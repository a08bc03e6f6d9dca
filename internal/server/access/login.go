package access

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/store/memory"
)

const (
	// addressFailures limits the failed logins of an address, or of a /64 of IPv6.
	addressFailures = "gcra 10/1m burst=30"
	// userFailures limits the failed logins of a name from a network: a /24 of IPv4, a /48 of IPv6.
	// There is no limit for a name alone: anybody could lock out the user.
	userFailures = "gcra 10/1m burst=30"
	// failureMemory bounds the memory of both limits. Beyond it new addresses share a budget.
	failureMemory = 8 << 20

	maxWaiting = 64 // verifications that wait for their turn
	// maxPerAddress is how many of them may be of one address. After a restart the users of one
	// machine, or of one Unix socket, log in at once.
	maxPerAddress = maxWaiting / 4
	waitTimeout   = 5 * time.Second
)

// logins verifies secrets: few at once, since each costs memory and processor time on purpose, and
// none for addresses with too many failures.
type logins struct {
	addresses, users *weir.Limiter
	slots            chan struct{} // an element for each verification under way

	mu      sync.Mutex
	flights map[flightKey]*flight
	waiting map[netip.Prefix]int // verifications that wait or are under way
	count   int                  // of all of them

	verify func(h *hash, secret string) bool
}

// A flightKey is one secret for one name from one address.
type flightKey struct {
	digest digest
	from   netip.Prefix
}

// A flight is a verification that equal logins wait for, such as those of a connection pool.
type flight struct {
	done   chan struct{}
	user   *User
	secret *secret
	err    error
}

func (l *logins) init() {
	state := memory.New(memory.Options{MaxBytes: failureMemory, Overflow: memory.Share})
	limiter := func(text, name string) *weir.Limiter {
		limit, err := weir.ParseLimit(text)
		if err == nil {
			var made *weir.Limiter
			if made, err = weir.New(limit, weir.WithStore(state), weir.WithName(name)); err == nil {
				return made
			}
		}
		panic(err) // of constants
	}
	l.addresses, l.users = limiter(addressFailures, "address"), limiter(userFailures, "user")
	l.slots = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))
	l.flights, l.waiting = map[flightKey]*flight{}, map[netip.Prefix]int{}
	l.verify = (*hash).matches
}

// Login returns the user of a name and a secret. The error is ErrWrong, ErrBusy, a *LimitError, or
// that of ctx. A secret that was verified before costs a fast hash; others wait for a slow hash, of
// which few are computed at once.
func (u *Users) Login(ctx context.Context, name, secret string, from net.Addr) (*User, error) {
	user, _, err := u.login(ctx, name, secret, from)
	return user, err
}

func (u *Users) login(ctx context.Context, name, text string, from net.Addr) (*User, *secret, error) {
	if len(name) > maxName || len(text) > maxSecret || text == "" {
		u.refuse(name, from, ErrWrong)
		return nil, nil, ErrWrong
	}
	table, d := u.table.Load(), u.digest(name, text)
	if user := table.users[name]; user != nil && user.on {
		for _, s := range user.secrets {
			if s.is(&d) {
				return user, s, nil
			}
		}
	}
	user, s, err := u.logins.await(ctx, table, name, text, d, from)
	if err != nil && ctx.Err() == nil {
		u.refuse(name, from, err)
	}
	return user, s, err
}

// await verifies a secret, or waits for the verification of an equal login.
func (l *logins) await(ctx context.Context, t *Table, name, text string, d digest, from net.Addr) (*User, *secret, error) {
	address, _ := guard.Prefix(from) // none: clients of Unix sockets count as one
	key := flightKey{d, address}
	l.mu.Lock()
	f := l.flights[key]
	leads := f == nil
	if leads {
		if l.count >= maxWaiting || l.waiting[address] >= maxPerAddress {
			l.mu.Unlock()
			return nil, nil, ErrBusy
		}
		f = &flight{done: make(chan struct{}), err: ErrBusy}
		l.flights[key] = f
		l.count++
		l.waiting[address]++
	}
	l.mu.Unlock()
	if leads {
		defer l.leave(key, f)
		f.user, f.secret, f.err = l.attempt(ctx, t, name, text, d, address)
		return f.user, f.secret, f.err
	}
	select {
	case <-f.done:
		if errors.Is(f.err, context.Canceled) || errors.Is(f.err, context.DeadlineExceeded) { // of the leader's
			return nil, nil, ErrBusy
		}
		return f.user, f.secret, f.err
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// leave ends a flight, also after a panic.
func (l *logins) leave(key flightKey, f *flight) {
	l.mu.Lock()
	delete(l.flights, key)
	l.count--
	if l.waiting[key.from]--; l.waiting[key.from] == 0 {
		delete(l.waiting, key.from)
	}
	l.mu.Unlock()
	close(f.done)
}

// attempt charges a failure, verifies the secret, and refunds the failure if the secret is right.
func (l *logins) attempt(ctx context.Context, t *Table, name, text string, d digest, address netip.Prefix) (*User, *secret, error) {
	charges := []weir.Charge{
		{Limiter: l.addresses, Key: address.String(), Cost: 1},
		{Limiter: l.users, Key: name + "\x00" + network(address).String(), Cost: 1},
	}
	decision, _, err := weir.TakeAll(ctx, charges...)
	switch {
	case err != nil:
		return nil, nil, err
	case !decision.Allowed:
		return nil, nil, &LimitError{decision.RetryAfter}
	}
	refund := func() {
		for _, c := range charges {
			_, _ = c.Limiter.Refund(context.WithoutCancel(ctx), c.Key, 1) // in memory
		}
	}
	timer := time.NewTimer(waitTimeout)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
	case <-timer.C:
		refund()
		return nil, nil, ErrBusy
	case <-ctx.Done():
		refund()
		return nil, nil, ctx.Err()
	}
	defer func() { <-l.slots }()
	user, secrets := t.secretsOf(name)
	for _, s := range secrets {
		if l.verify(&s.hash, text) && user != nil {
			s.verified.Store(&d)
			refund()
			return user, s, nil
		}
	}
	return nil, nil, ErrWrong
}

// network returns the network around an address by which failures of a name are counted.
func network(address netip.Prefix) netip.Prefix {
	bits := 24
	if !address.Addr().Is4() {
		bits = 48
	}
	p, _ := address.Addr().Prefix(bits)
	return p
}
