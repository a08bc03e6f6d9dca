package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// Replay and policies have one key text: a limit denies in a replay as many requests as it denies
// live.
func TestReplayCountsClientsAsPoliciesDo(t *testing.T) {
	var addresses []string
	for i := range 50 {
		addresses = append(addresses,
			fmt.Sprintf("2001:db8::%x", i+1),       // one /64
			fmt.Sprintf("2001:db8:1:%x::1", i),     // 50 of one /48
			fmt.Sprintf("::ffff:198.51.100.%d", i), // IPv4 in the form of IPv6
			fmt.Sprintf("192.0.2.%d", i/2))
	}
	var log strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&log, "%s - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5\n", a)
	}
	for key, wantClients := range map[string]int{
		"client_ip": 1 + 50 + 50 + 25, "client_ip/48": 1 + 1 + 50 + 25, "client_ip/24/56": 1 + 1 + 1 + 1, "client_ip/128": 50 + 50 + 50 + 25,
	} {
		config, err := policy.Parse([]byte("policies: [{name: a, key: ["+key+"], limits: 1/1h}]"), "test")
		if err != nil {
			t.Fatal(err)
		}
		set, err := policy.New(config, policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		denied := 0
		for _, a := range addresses {
			d, err := set.Check(t.Context(), &policy.Request{ClientIP: netip.MustParseAddr(a)})
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed {
				denied++
			}
		}
		out, err := replayArgs(t, log.String(), "--json", "--limit", "1/1h", "--key", key)
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Clients int
			Limits  []struct{ Denied int }
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		if report.Clients != wantClients || report.Limits[0].Denied != denied || denied != len(addresses)-wantClients {
			t.Errorf("%s: replay has %d clients and denies %d, policies deny %d; want %d clients", key, report.Clients, report.Limits[0].Denied, denied, wantClients)
		}
	}
}

func TestReplayNamesClientIPForIP(t *testing.T) {
	_, err := replayArgs(t, replayLine, "--limit", "1/1m", "--key", "ip")
	if err == nil || !strings.Contains(err.Error(), "did you mean client_ip?") {
		t.Errorf("--key ip: %v", err)
	}
}
