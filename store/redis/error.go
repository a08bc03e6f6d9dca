package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/store"
)

// A failure is an error of the server, or of the way to it.
type failure struct {
	verb, server string
	cause        error
	meaning      string // of the cause; "" if there is nothing to add
	nothing      bool   // nothing was done
}

func (e *failure) Error() string {
	text := fmt.Sprintf("redis: %s at %s: %v", e.verb, e.server, e.cause)
	if e.meaning != "" {
		text += "; " + e.meaning
	}
	if e.nothing {
		text += "; " + store.ErrNothingDone.Error()
	}
	return text
}

func (e *failure) Unwrap() []error {
	if e.nothing {
		return []error{e.cause, store.ErrNothingDone}
	}
	return []error{e.cause}
}

// takes reports whether an operation may take units.
func takes(verb string) bool {
	return verb != "open" && verb != "check" && verb != "inspect" && verb != "load"
}

// fail returns an error of the server, or of the way to it, with the operation, the server, and
// whether certainly nothing was done.
func (s *Store) fail(verb string, keys []string, err error) error {
	e := &failure{verb: verb, server: s.server, cause: err}
	if answer, ok := rueidis.IsRedisErr(err); ok {
		e.answered(answer.Error(), keys)
		return e
	}
	e.nothing = takes(verb) && (errors.Is(err, errUnconnected) || errors.Is(err, errClosed) || isDial(err))
	return e
}

// errClosed is the error of a call that began after Close. It was not sent. A call that waits when
// its connection closes has rueidis.ErrClosing alone, and the server may have received it: when the
// client closes, or closes the connection to the previous master after a failover.
var errClosed = fmt.Errorf("the store is closed: %w", rueidis.ErrClosing)

// isDial reports whether an error is of a connection that was not made. Nothing was sent on it.
func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

const accepted = "accepted: what weir writes, or no value; a reset of the key forgets it"

// answered says what an error means that the server returned.
func (e *failure) answered(text string, keys []string) {
	if key, ok := foreign(text, keys); ok {
		e.cause = &store.KeyError{Key: key, Err: e.cause}
		e.meaning, e.nothing = accepted, true
		return
	}
	switch {
	case strings.Contains(text, "'sentinel'"), strings.Contains(text, "'SENTINEL'"):
		e.meaning = "accepted: the addresses of sentinels; this is a server that is none"
	case strings.Contains(text, "syntax error"), strings.Contains(text, "non deterministic"),
		strings.Contains(text, "Unknown Redis command"), strings.Contains(text, "unknown command"):
		e.meaning = "accepted: Redis 6.2 or later, or Valkey, with scripts"
	case strings.HasPrefix(text, "NOPERM"), strings.Contains(text, "can't run this command"), strings.Contains(text, "No permissions"):
		e.meaning = "the user needs the rights that docs/redis.md lists"
	case strings.HasPrefix(text, "TRYAGAIN"):
		e.meaning = "the slot is on its way to another node"
	}
	_, e.nothing = refusalOf(text)
	e.nothing = e.nothing && takes(e.verb)
}

// A refusal is how the server refuses a command before it has changed anything.
type refusal struct {
	prefix string
	cause  store.Cause
}

// refusals are what servers answer to a command, or to the first write of a script, that they do not carry out. A server
// that does not serve anybody, reads included, is unready.
var refusals = []refusal{
	{"LOADING ", store.CauseUnready},
	{"MASTERDOWN ", store.CauseUnready},
	{"CLUSTERDOWN The cluster is down", store.CauseUnready},
	{"CLUSTERDOWN ", store.CauseRejection}, // a slot that nobody serves
	{"BUSY ", store.CauseUnready},          // a script of somebody's has run for seconds
	{"NOAUTH ", store.CauseUnready},
	{"WRONGPASS ", store.CauseUnready},
	{"ERR max number of clients", store.CauseUnready},
	{"ERR max+", store.CauseUnready},
	{"OOM ", store.CauseRejection}, // those that deny, and peeks, are carried out
	{"READONLY ", store.CauseRejection},
	{"MISCONF ", store.CauseRejection},
	{"NOREPLICAS ", store.CauseRejection},
	{"NOSCRIPT ", store.CauseRejection},
	{"TRYAGAIN ", store.CauseRejection},
	{"CROSSSLOT ", store.CauseRejection},
	{"MOVED ", store.CauseRejection},
	{"ASK ", store.CauseRejection},
}

// refusalOf returns the cause of an error that a server answered, and whether the command has certainly changed nothing.
func refusalOf(text string) (cause store.Cause, nothing bool) {
	for _, r := range refusals {
		if strings.HasPrefix(text, r.prefix) {
			return r.cause, true
		}
	}
	// A right that lacks inside the script may lack after a write.
	return store.CauseRejection, strings.HasPrefix(text, "NOPERM ") && !strings.Contains(text, "script")
}

// classify returns the cause of an error.
func classify(err error) store.Cause {
	answer, answered := rueidis.IsRedisErr(rootOf(err))
	network, isNetwork := errors.AsType[net.Error](err)
	switch {
	case answered:
		cause, _ := refusalOf(answer.Error())
		return cause
	case errors.Is(err, rueidis.ErrClosing):
		return store.CauseCaller
	case isDial(err), errors.Is(err, errUnconnected):
		return store.CauseConnection
	case isNetwork && network.Timeout():
		return store.CauseTimeout
	case isNetwork, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return store.CauseLost
	case errors.Is(err, store.ErrUnnamed), errors.Is(err, store.ErrClientTime), errors.Is(err, store.ErrTime),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return store.CauseCaller
	}
	return store.CauseRejection
}

// rootOf returns the error of the client library that an error of this package is about.
func rootOf(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		err = f.cause
	}
	if k, ok := errors.AsType[*store.KeyError](err); ok {
		err = k.Err
	}
	return err
}

// foreign reports which key has a value that is no state, if that is what the script says: see take.lua.
func foreign(text string, keys []string) (string, bool) {
	if strings.Contains(text, "WRONGTYPE") && len(keys) == 1 {
		return keys[0], true
	}
	_, n, found := strings.Cut(text, "WEIRSTATE ")
	i, err := strconv.Atoi(n)
	if !found || err != nil || i < 1 || i > len(keys) {
		return "", false
	}
	return keys[i-1], true
}

// tries is how often a call is made that is to be tried again: two keys of a slot that is on its way to another node.
const tries = 5

// pause waits before a call is made again, and reports whether there is time for it.
func pause(ctx context.Context, n int) bool {
	timer := time.NewTimer(time.Duration(n) * 10 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
