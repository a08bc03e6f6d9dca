package redis_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// The client closes while the server has carried out a call whose reply is lost. The error of the
// call must not state that nothing was changed: a unit was charged.
func TestClientClosesDuringACall(t *testing.T) {
	server := testengine.Redis(t)
	direct := openURL(t, server.URL(), redis.Options{})
	way := testengine.NewProxy(t, server)
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{way.Addr()}, DisableCache: true, ForceSingleClient: true,
		PipelineMultiplex: -1,   // one connection
		AlwaysPipelining:  true, // as after the first two calls at one time
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := redis.New(c, redis.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	b, check := bind(t, s, t.Name(), "10/1h"), bind(t, direct, t.Name(), "10/1h")
	take(t, b, "key", 1)
	way.Set(testengine.Fault{Replies: testengine.Flow{Drop: true}})
	done := make(chan error, 1)
	go func() {
		_, err := b.Do(context.Background(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
		done <- err
	}()
	until(t, func() error {
		if v := take(t, check, "key", 0); v.Remaining != 8 {
			return fmt.Errorf("%d remain; %d calls have ended", v.Remaining, len(done))
		}
		return nil
	})
	c.Close() // it waits a second for the reply
	if err := <-done; !errors.Is(err, rueidis.ErrClosing) || errors.Is(err, store.ErrNothingDone) {
		t.Errorf("%v; want %v, and an unknown effect", err, rueidis.ErrClosing)
	}
}
