package resp_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
)

func TestTakeAnswersSixIntegers(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock)}})
	c := dial(t, address)
	c.expect([][2]string{
		{`WEIR.TAKE a "2/3s"`, "[1 2 1 0 1500000 0]"},
		{`weir.take a "2/3s" cost 1`, "[1 2 0 0 3000000 0]"},
		{`WEIR.TAKE a "2/3s"`, "[0 2 0 1500000 3000000 0]"},
		{`WEIR.TAKE a "2/3s" COST 3`, "[0 2 0 -1 3000000 0]"},
		{`WEIR.TAKE a "2/3s" COST 0`, "[1 2 0 0 3000000 0]"},
		{`WEIR.PEEK a "2/3000ms"`, "[1 2 0 0 3000000 0]"},
		{`WEIR.TAKE b "2/3s"`, "[1 2 1 0 1500000 0]"},
		{`WEIR.TAKE a "3/3s"`, "[1 3 2 0 1000000 0]"},
		{`WEIR.REFUND a "2/3s"`, "[1 2 1 0 1500000 0]"},
		{`WEIR.REFUND a "2/3s" COST 9`, "[1 2 2 0 0 0]"},
		{`WEIR.TAKE q "leaky-queue 4/1s queue=2" COST 2`, "[1 3 1 0 500000 0]"},
		{`WEIR.TAKE q "leaky-queue 4/1s queue=2"`, "[1 3 0 0 750000 500000]"},
		{`WEIR.RESET a "2/3s"`, "OK"},
		{`WEIR.RESET a "2/3s"`, "OK"},
		{`WEIR.TAKE a "2/3s" COST 2`, "[1 2 0 0 3000000 0]"},
	}...)
	clock.advance(3*time.Second - time.Nanosecond)
	c.expect([][2]string{
		{`WEIR.TAKE a "2/3s" COST 2`, "[0 2 1 1 1 0]"}, // one nanosecond is a whole microsecond
		{`WEIR.TAKE a "3/1s"`, "[1 3 2 0 333334 0]"},   // and so is a third
	}...)
}

// The empty key is a key: all its requests share its budget.
func TestEmptyKeyIsOneKey(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(newStoppedClock())}})
	dial(t, address).expect([][2]string{
		{`WEIR.TAKE "" "2/2s"`, "[1 2 1 0 1000000 0]"},
		{`WEIR.TAKE "" "2/2s"`, "[1 2 0 0 2000000 0]"},
		{`WEIR.TAKE "" "2/2s"`, "[0 2 0 1000000 2000000 0]"},
		{`WEIR.TAKE - "2/2s"`, "[1 2 1 0 1000000 0]"},
		{`WEIR.RESET "" "2/2s"`, "OK"},
		{`WEIR.PEEK "" "2/2s"`, "[1 2 2 0 0 0]"},
	}...)
}

func TestTakeRefusesWhatMakesNoSense(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{TrustClientTime: true}, MaxKey: 10})
	dial(t, address).expect([][2]string{
		{`WEIR.TAKE`, "ERR wrong number of arguments for 'weir.take' command"},
		{`WEIR.TAKE k`, "ERR wrong number of arguments for 'weir.take' command"},
		{`WEIR.TAKE k 5/1s COST`, `ERR syntax error: "COST" needs a value`},
		{`WEIR.TAKE k 5/1s COST 1 COST 1`, `ERR syntax error at "COST"; accepted: COST n, AT time, NAME name, NS, TIME, DEBT, ONERROR deny|allow|local, each once`},
		{`WEIR.TAKE k 5/1s AT 1 AT 1`, `ERR syntax error at "AT"; accepted: COST n, AT time, NAME name, NS, TIME, DEBT, ONERROR deny|allow|local, each once`},
		{`WEIR.TAKE k 5/1s PRICE 1`, `ERR syntax error at "PRICE"; accepted: COST n, AT time, NAME name, NS, TIME, DEBT, ONERROR deny|allow|local, each once`},
		{`WEIR.PEEK k 5/1s COST 1`, `ERR syntax error at "COST"; accepted: AT time, NAME name, NS, TIME, DEBT, ONERROR deny|allow|local, each once`},
		{`WEIR.TAKE k 5/1s COST -1`, `ERR COST is "-1"; accepted: a whole number from 0 to 9223372036854775807`},
		{`WEIR.TAKE k 5/1s COST 1.5`, `ERR COST is "1.5"; accepted: a whole number from 0 to 9223372036854775807`},
		{`WEIR.TAKE k 5/1s COST 9223372036854775808`, `ERR COST is "9223372036854775808"; accepted: a whole number from 0 to 9223372036854775807`},
		{`WEIR.TAKE k 5/1s COST 9223372036854775807`, "[0 5 5 -1 0 0]"},
		{`WEIR.TAKE k 5/1s AT x`, `ERR AT is "x"; accepted: a whole number from -1099511627776000000 to 1099511627776000000`},
		{`WEIR.TAKE k 5/1s AT 9000000000000000`, "ERR AT is out of range; accepted: a time in the years 1866 to 2074"},
		{`WEIR.TAKE k 5`, `ERR limit has text "5"; accepted: [algorithm] count/period, such as 100/1m, gcra 10/1s burst=20 or 500/day, or concurrent count lease=duration`},
		{`WEIR.TAKE k 0/1s`, "ERR limit has count 0; accepted: 1 to 9223372036854775807"},
		{`WEIR.TAKE k "5/1s burst=\r\n"`, `ERR limit has burst ""; accepted: a whole number`},
		{`WEIR.TAKE 12345678901 5/1s`, "ERR key is 11 bytes long; accepted: at most 10"},
		{`WEIR.TAKE "" 5/1h`, "[1 5 4 0 720000000 0]"},
		{`WEIR.RESET k 5/1s COST 1`, `ERR syntax error at "COST"; accepted: AT time, NAME name, NS, TIME, DEBT, each once`},
	}...)
}

func TestClientTimeIsTrustedOnlyByOption(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{TrustClientTime: true}})
	dial(t, address).expect([][2]string{
		{`WEIR.TAKE k 1/1s AT 1700000000000000`, "[1 1 0 0 1000000 0]"},
		{`WEIR.TAKE k 1/1s AT 1700000000999999 COST 1`, "[0 1 0 1 1 0]"},
		{`WEIR.PEEK k 1/1s AT 1700000000500000`, "[1 1 0 0 500000 0]"},
		{`WEIR.REFUND k 1/1s AT 1700000000500000`, "[1 1 1 0 0 0]"},
		{`WEIR.TAKE old 1/1s AT -1`, "[1 1 0 0 1000000 0]"},
	}...)
	_, address = start(t, resp.Options{Service: &operation.Service{}})
	refusal := "ERR AT is refused: this server does not trust the time of its clients (weir serve --trust-client-time does)"
	dial(t, address).expect([][2]string{
		{`WEIR.TAKE k 1/1s AT 1700000000000000`, refusal},
		{`WEIR.PEEK k 1/1s AT 1700000000000000`, refusal},
		{`WEIR.REFUND k 1/1s AT 1700000000000000`, refusal},
		{`RL.REDUCE k 1 1 AT 1700000000`, refusal},
		{`WEIR.TAKE k 1/1h`, "[1 1 0 0 3600000000 0]"},
	}...)
}
