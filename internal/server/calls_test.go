package server_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testengine"
)

// Calls of an engine are timed by operation, and their failures are counted by cause.
func TestCallsOfAnEngineAreCounted(t *testing.T) {
	e := testengine.Redis(t)
	s := start(t, server.Config{Store: e.URL() + "?timeout=10m"})
	redis(t, s, "WEIR.TAKE k 5/1h COST 2\r\nWEIR.REFUND k 5/1h", 14)
	redis(t, s, "WEIR.TAKE k 5/1h COST 0", 7)
	expect := func(lines ...string) {
		t.Helper()
		metrics := get(t, s, "/metrics")
		for _, line := range lines {
			if !strings.Contains(metrics, line) {
				t.Errorf("metrics have no %s:\n%s", line, weirOnly(metrics))
			}
		}
	}
	expect(
		`weir_store_call_seconds_count{operation="take"} 1`+"\n",
		`weir_store_call_seconds_count{operation="refund"} 1`+"\n",
		`weir_store_call_seconds_count{operation="peek"} 1`+"\n",
		`weir_store_call_failures_total{cause="wrongtype"} 0`+"\n",
		`weir_store_call_failures_total{cause="connection"} 0`+"\n",
		"weir_store_circuits_open 0\n",
	)
	c, err := net.Dial("tcp", e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(command string) {
		t.Helper()
		_, _ = fmt.Fprint(c, command+"\r\n")
		reply := make([]byte, 256)
		if n, err := c.Read(reply); err != nil || reply[0] == '-' {
			t.Fatalf("%s: %s, %v", command, reply[:n], err)
		}
	}
	ask(`EVAL "for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', k) redis.call('LPUSH', k, 'x') end return 1" 0`)
	redis(t, s, "WEIR.TAKE k 5/1h", 1)
	expect(`weir_store_call_failures_total{cause="wrongtype"} 1` + "\n")
	ask("CONFIG SET maxmemory 1")
	redis(t, s, "WEIR.TAKE m 5/1h", 1)
	expect(`weir_store_call_failures_total{cause="oom"} 1` + "\n")
}
