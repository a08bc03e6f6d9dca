package resp_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// What commands get while the store fails: an error, or a decision without it, and who made it.
func TestCommandsWhileTheStoreFails(t *testing.T) {
	for _, waits := range []bool{false, true} {
		var log safeText
		server, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(unreachable{memory.New(memory.Options{})}), Waits: waits, Log: newLogger(&log)}})
		const undecided = "ERR no decision could be made, try again"
		dial(t, address).expect([][2]string{
			{`WEIR.TAKE k 4/1h`, undecided},
			{`WEIR.TAKE k 4/1h ONERROR deny`, undecided},
			{`WEIR.TAKE k 4/1h COST 9 onerror allow`, "[1 4 4 0 0 0 1]"},
			{`WEIR.TAKE k 4/1h COST 4 ONERROR local`, "[1 4 0 0 3600000000 0 2]"},
			{`WEIR.PEEK p 4/1h ONERROR "local 25%"`, "[1 1 1 0 0 0 2]"},
			{`WEIR.TAKEALL a "4/1h" AND b "8/1h" COST 8 ONERROR allow`, "[[1 4 4 0 0 0] [1 4 4 0 0 0] [1 8 8 0 0 0] 1]"},
			{`WEIR.TAKEALL a "4/1h" COST 4 AND b "8/1h" COST 8 ONERROR local`, "[[1 4 0 0 3600000000 0] [1 4 0 0 3600000000 0] [1 8 0 0 3600000000 0] 2]"},
			{`WEIR.TAKEALL a "4/1h" AND c "8/1h" ONERROR deny`, undecided},
			{`WEIR.TAKEALL a "4/1h" NAME n ID 7 LIFE 1000000`, undecided},
			{`WEIR.REFUND k 4/1h`, undecided}, {`WEIR.RESET k 4/1h`, undecided}, {`WEIR.RENEW k "concurrent 4 lease=1h" END 7`, undecided},
			{`CL.THROTTLE k 3 4 3600`, undecided}, {`RL.REDUCE k 4 3600`, undecided},
			{`WEIR.TAKE k 3/1h ONERROR "local 25%"`, "ERR limit has burst 3; accepted: 4 or more, for a share of 25%"},
			{`WEIR.TAKE k 4/1h ONERROR maybe`, `ERR ONERROR is "maybe"; accepted: deny, allow, local, or local with a share of the limit, such as local 25%`},
			{`WEIR.TAKE k 4/1h ONERROR`, `ERR syntax error: "ONERROR" needs a value`},
			{`WEIR.TAKEALL a "4/1h" NAME n ID 7 LIFE 1000000 ONERROR local`, "ERR ONERROR is given with ID; accepted: one of them, because the store alone makes reservations"},
			{`WEIR.REFUND k 4/1h ONERROR local`, `ERR syntax error at "ONERROR"; accepted: COST n, AT time, NAME name, NS, TIME, DEBT, each once`},
		}...)
		eventually(t, "the commands are counted", func() bool { return server.Stats().Requests == 19 })
		if s := server.Stats(); s.FailedOpen != 2 || s.Local != 3 || s.Undecided != 14 {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(log.String(), "dial tcp 10.1.2.3") {
			t.Errorf("logged %s", log.String())
		}
	}
}

// The default of the server is for commands without a decision of their own, whose replies it leaves as
// they are.
func TestDefaultWhileTheStoreFails(t *testing.T) {
	for _, waits := range []bool{false, true} {
		_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(unreachable{memory.New(memory.Options{})}), Waits: waits, OnStoreError: store.LocalShare(0.5), Log: newLogger(new(safeText))}})
		c := dial(t, address)
		c.send(strings.Repeat("WEIR.TAKE k 4/1h\r\n", 3)) // which may be decided as a batch
		for i, prefix := range []string{"[1 2 1 0 ", "[1 2 0 0 ", "[0 2 0 "} {
			if got := c.reply(); !strings.HasPrefix(got, prefix) {
				t.Errorf("waits %v, reply %d: %s", waits, i, got)
			}
		}
		c.expect([][2]string{
			{`CL.THROTTLE t 3 4 3600 2`, "[0 2 0 -1 3600]"},
			{`THROTTLE t 4 4 3600 0`, "[1 2 0 3600 0]"},
			{`RL.REDUCE r 4 3600 TAKE 2`, "2"},
			{`RL.REDUCE r 4 3600 TAKE 2`, "0"},
			{`WEIR.TAKE k 4/1h ONERROR deny`, "ERR no decision could be made, try again"},
			{`WEIR.TAKE m "concurrent 1 lease=1s"`, "ERR no decision could be made, try again"}, // half of 1
		}...)
	}
}

// While the store works, ONERROR changes nothing but the reply, which reports that the store decided.
func TestOnErrorWhileTheStoreWorks(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock), OnStoreError: store.Allow}})
	dial(t, address).expect([][2]string{
		{`WEIR.TAKE a "2/3s" ONERROR allow`, "[1 2 1 0 1500000 0 0]"},
		{`WEIR.TAKEUPTO a "2/3s" COST 5 ONERROR local`, "[1 2 0 0 3000000 0 1 0]"},
		{`WEIR.TAKE a "2/3s"`, "[0 2 0 1500000 3000000 0]"},
		{`WEIR.TAKEALL b "2/3s" ONERROR local`, "[[1 2 1 0 1500000 0] [1 2 1 0 1500000 0] 0]"},
	}...)
}

func TestOnErrorOfChecks(t *testing.T) {
	server, address := start(t, resp.Options{Service: &operation.Service{Policies: ruled(t, unreachable{memory.New(memory.Options{})}), Log: newLogger(new(safeText))}})
	const login = "WEIR.CHECK METHOD POST PATH /login IP 192.0.2.7 "
	dial(t, address).expect([][2]string{
		{login + "ONERROR deny", "[0 2 0 1000000 0 0 [login]  [[login 2/2s enforced 0 2 0 1000000 0 0]] 1]"},
		{login + "ONERROR allow", "[1 2 2 0 0 0 []  [[login 2/2s enforced 1 2 2 0 0 0]] 1]"},
		{login + "ONERROR local ONERROR deny", `ERR syntax error at "ONERROR"; accepted: METHOD m, HOST h, PATH p, QUERY q, IP address, COST n, HOLD milliseconds, ONERROR deny|allow|local, each once; and HEADER name value, ATTR name value`},
		{login + "ONERROR yes", `ERR ONERROR is "yes"; accepted: deny, allow, local, or local with a share of the limit, such as local 25%`},
	}...)
	if got := dial(t, address).do(login + `ONERROR "local 50%"`); !strings.HasPrefix(got, "[1 1 0 0 ") || !strings.HasSuffix(got, "]] 2]") {
		t.Errorf("got %s", got)
	}
	eventually(t, "the checks are counted", func() bool { return server.Stats().Requests == 5 })
	if s := server.Stats(); s.Undecided != 3 || s.FailedOpen != 1 || s.Local != 1 {
		t.Errorf("%+v", s)
	}
}
