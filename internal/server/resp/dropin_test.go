package resp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
)

func TestRedisCellThrottle(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock)}})
	c := dial(t, address)
	c.expect([][2]string{
		// The example of redis-cell's own page: max_burst 15, 30 per 60 s.
		{"CL.THROTTLE user123 15 30 60 1", "[0 16 15 -1 2]"},
		{"cl.throttle user123 15 30 60", "[0 16 14 -1 4]"},
		{"CL.THROTTLE user123 15 30 60 0", "[0 16 14 -1 4]"},
		{"CL.THROTTLE user123 15 30 60 14", "[0 16 0 -1 32]"},
		{"CL.THROTTLE user123 15 30 60", "[1 16 0 2 32]"},
		{"CL.THROTTLE user123 15 30 60 17", "[1 16 0 -1 32]"}, // limited, and for ever
		{"CL.THROTTLE once 0 1 60", "[0 1 0 -1 60]"},
	}...)
	clock.advance(1500 * time.Millisecond)
	c.expect([][2]string{
		{"CL.THROTTLE user123 15 30 60", "[1 16 0 1 31]"}, // half seconds are rounded up
	}...)
	clock.advance(500 * time.Millisecond)
	c.expect([][2]string{
		{"CL.THROTTLE user123 15 30 60", "[0 16 0 -1 32]"},
		{"CL.THROTTLE user123 31 30 60", "[0 32 15 -1 34]"}, // the debt is a time, whatever the limit
		{"THROTTLE user123 32 30 60 0", "[1 32 15 34 0]"},
		{"WEIR.TAKE user123 \"gcra 30/60s burst=32\"", "[1 32 31 0 2000000 0]"},
	}...)
}

func TestThrottlecrabThrottle(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock)}})
	c := dial(t, address)
	c.expect([][2]string{
		{"THROTTLE k 2 100 60", "[1 2 1 1 0]"},
		{"THROTTLE k 2 100 60 1", "[1 2 0 2 0]"},
		{"THROTTLE k 2 100 60", "[0 2 0 2 1]"},
		{"THROTTLE k 2 100 60 3", "[0 2 0 2 -1]"},
		{"THROTTLE k 2 100 60 0", "[1 2 0 2 0]"},
		{"throttle other 1 1 60", "[1 1 0 60 0]"},
	}...)
	clock.advance(1200 * time.Millisecond)
	c.expect([2]string{"THROTTLE k 2 100 60 2", "[1 2 0 2 0]"})
}

func TestThrottleRefusesWhatMakesNoSense(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}, MaxKey: 3})
	dial(t, address).expect([][2]string{
		{"CL.THROTTLE k 1 1", "ERR wrong number of arguments for 'cl.throttle' command"},
		{"CL.THROTTLE k 1 1 1 1 1", "ERR wrong number of arguments for 'cl.throttle' command"},
		{"THROTTLE k 1 1 1 1 1", "ERR wrong number of arguments for 'throttle' command"},
		{"CL.THROTTLE long 1 1 1", "ERR key is 4 bytes long; accepted: at most 3"},
		{"CL.THROTTLE k -1 1 1", `ERR max_burst is "-1"; accepted: a whole number from 0 to 9223372036854775806`},
		{"THROTTLE k 0 1 1", `ERR max_burst is "0"; accepted: a whole number from 1 to 9223372036854775807`},
		{"CL.THROTTLE k 1 0 1", `ERR count is "0"; accepted: a whole number from 1 to 9223372036854775807`},
		{"CL.THROTTLE k 1 1 0", `ERR period is "0"; accepted: a whole number from 1 to 9223372036`},
		{"CL.THROTTLE k 1 1 9223372037", `ERR period is "9223372037"; accepted: a whole number from 1 to 9223372036`},
		{"CL.THROTTLE k 1 1 1 -1", `ERR quantity is "-1"; accepted: a whole number from 0 to 9223372036854775807`},
		{"CL.THROTTLE k 1 1 1 x", `ERR quantity is "x"; accepted: a whole number from 0 to 9223372036854775807`},
		{"CL.THROTTLE k 9223372036854775806 1 9223372036",
			"ERR limit has period 2562047h47m16s; accepted: less than 640511h56m49.213693952s for a count of 1, because it takes 73 years to refill"},
	}...)
}

func TestBucketsAnswerTheTokensBeforeTaking(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock)}})
	c := dial(t, address)
	c.expect([][2]string{
		// The example of smyte's own page.
		{"RL.REDUCE twoPerMin 2 60", "2"},
		{"RL.REDUCE twoPerMin 2 60", "1"},
		{"RL.REDUCE twoPerMin 2 60", "0"},
		{"RL.GET twoPerMin 2 60", "0"},
		{"RL.PGET twoPerMin 2 60000", "0"},
		{"RL.GET twoPerMin 2 61", "2"}, // other parameters, another bucket
		{"RL.GET twoPerMin 2 60 REFILL 1", "2"},
		{"RL.REDUCE short 5 60 TAKE 3", "5"},
		{"RL.REDUCE short 5 60 TAKE 3", "2"}, // a short request drains it
		{"RL.REDUCE short 5 60 TAKE 3", "0"},
		{"RL.REDUCE idle 5 60 TAKE 0", "5"},
		{"rl.preduce slow 10 1000 refill 2 take 10", "10"},
	}...)
	clock.advance(2999 * time.Millisecond)
	c.expect([2]string{"RL.PGET slow 10 1000 REFILL 2", "4"})
	clock.advance(time.Millisecond)
	c.expect([2]string{"RL.PREDUCE slow 10 1000 REFILL 2", "6"}, [2]string{"RL.PGET slow 10 1000 REFILL 2", "5"})
}

func TestBucketsAreThoseOfALimitText(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	c := dial(t, address)
	c.expect([][2]string{
		{"RL.REDUCE k 10 86400 REFILL 2 TAKE 3", "10"},
		{"RL.PREDUCE k 10 86400 REFILL 2 TAKE 4", "10"},
		{"RL.GET k 10 86400 REFILL 2", "7"},
	}...)
	for text, want := range map[string]string{"refill-bucket 2/86400s burst=10": "[1 10 7 0 ", "refill-bucket 2/86400ms burst=10": "[1 10 6 0 "} {
		if got := c.do(`WEIR.PEEK k "` + text + `"`); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s...", text, got, want)
		}
	}
}

func TestBucketsTakeTheTimeOfATrustedClient(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{TrustClientTime: true}})
	dial(t, address).expect([][2]string{
		{"RL.REDUCE k 1 10 AT 1700000000", "1"},
		{"RL.REDUCE k 1 10 AT 1700000009", "0"},
		{"RL.GET k 1 10 AT 1700000010", "1"},
		{"RL.PREDUCE p 1 10 AT 1700000000000", "1"},
		{"RL.PGET p 1 10 AT 1700000000009", "0"},
		{"RL.PGET p 1 10 AT 1700000000010", "1"},
	}...)
}

func TestBucketsRefuseWhatMakesNoSense(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	number := "; accepted: a whole number from 1 to 9223372036854775807"
	dial(t, address).expect([][2]string{
		{"RL.REDUCE k 1", "ERR wrong number of arguments for 'rl.reduce' command"},
		{"RL.REDUCE k 0 60", `ERR max is "0"` + number},
		{"RL.REDUCE k 1 0", `ERR refilltime is "0"; accepted: a whole number from 1 to 9223372036`},
		{"RL.REDUCE k 1 60 REFILL 0", `ERR REFILL is "0"` + number},
		{"RL.REDUCE k 1 60 TAKE -1", `ERR TAKE is "-1"; accepted: a whole number from 0 to 9223372036854775807`},
		{"RL.REDUCE k 1 60 TAKE", `ERR syntax error: "TAKE" needs a value`},
		{"RL.REDUCE k 1 60 STRICT x", `ERR syntax error at "STRICT"; accepted: REFILL n, TAKE n, AT time`},
		{"RL.GET k 1 60 TAKE 1", `ERR syntax error at "TAKE"; accepted: REFILL n, AT time`},
		{"RL.GET k 9 9223372036", "ERR limit has period 2562047h47m16s; accepted: less than 320255h58m24.606846976s"},
	}...)
}
