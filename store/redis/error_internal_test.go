package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/store"
)

// Each error has a cause, and says that nothing was changed where that is certain.
func TestCauses(t *testing.T) {
	for text, want := range map[string]struct {
		cause   store.Cause
		nothing bool
	}{
		"LOADING Redis is loading the dataset in memory":                             {store.CauseUnready, true},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set":    {store.CauseUnready, true},
		"CLUSTERDOWN The cluster is down":                                            {store.CauseUnready, true},
		"CLUSTERDOWN Hash slot not served":                                           {store.CauseRejection, true},
		"BUSY Redis is busy running a script":                                        {store.CauseUnready, true},
		"NOAUTH Authentication required.":                                            {store.CauseUnready, true},
		"WRONGPASS invalid username-password pair or user is disabled.":              {store.CauseUnready, true},
		"ERR max number of clients reached":                                          {store.CauseUnready, true},
		"OOM command not allowed when used memory > 'maxmemory'.":                    {store.CauseRejection, true},
		"READONLY You can't write against a read only replica.":                      {store.CauseRejection, true},
		"MISCONF Redis is configured to save RDB snapshots":                          {store.CauseRejection, true},
		"NOREPLICAS Not enough good replicas to write.":                              {store.CauseRejection, true},
		"TRYAGAIN Multiple keys request during rehashing of slot":                    {store.CauseRejection, true},
		"CROSSSLOT Keys in request don't hash to the same slot":                      {store.CauseRejection, true},
		"NOPERM this user has no permissions to run the 'evalsha' command":           {store.CauseRejection, true},
		"NOPERM ACL failure in script: User default has no permissions to run 'set'": {store.CauseRejection, false},
		"ERR some other error":                                                       {store.CauseRejection, false},
	} {
		cause, nothing := refusalOf(text)
		e := &failure{verb: "take", server: "a"}
		e.answered(text, nil)
		if cause != want.cause || nothing != want.nothing || errors.Is(e, store.ErrNothingDone) != want.nothing {
			t.Errorf("%s: %v, %v, %v", text, cause, nothing, e)
		}
	}
	s := &Store{server: "a"}
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	read := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	for _, test := range []struct {
		err     error
		cause   store.Cause
		nothing bool
	}{
		{dial, store.CauseConnection, true},
		{errUnconnected, store.CauseConnection, true},
		{read, store.CauseLost, false},
		{io.EOF, store.CauseLost, false},
		{net.ErrClosed, store.CauseLost, false},
		{context.DeadlineExceeded, store.CauseTimeout, false},
		{errClosed, store.CauseCaller, true},
		{rueidis.ErrClosing, store.CauseCaller, false}, // also of a call that was sent
	} {
		err := s.fail("take", nil, test.err)
		if cause := classify(err); cause != test.cause || errors.Is(err, store.ErrNothingDone) != test.nothing {
			t.Errorf("%v: %v", err, cause)
		}
	}
}
