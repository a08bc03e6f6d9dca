package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Clients are named by source and value, in any form, and a secret is stored as its hash.
func TestClientsBySource(t *testing.T) {
	t.Setenv("WEIR_CLIENTS", "sqlite:"+filepath.Join(t.TempDir(), "clients.db"))
	checkStep(t, step{"db migrate", exitOK, nil})
	config := file(t, "weir.yaml", `policies: [{name: a, key: "hash:header:X-API-Key|client_ip", limits: [5/1s], plans: {gold: 9/1s}}]`)
	lines := file(t, "clients.jsonl", `{"client":"client_ip=10.0.0.5","plan":"gold"}`+"\n"+`{"client":"10.0.0.6","plan":"gold"}`)
	for _, s := range []step{
		{"clients set hash:header:x-api-key=swordfish --plan gold --config " + config, exitOK, []string{""}},
		{"clients set client_ip=2001:db8:1:2::7 --plan gold --config " + config, exitOK, []string{""}},
		{"clients get client_ip=2001:DB8:1:2::8", exitOK, []string{"client_ip=2001:db8:1:2::/64"}},
		{"clients set acme --plan gold --config " + config, exitError, []string{"named by a value alone"}},
		{"clients import " + lines + " --config " + config, exitError, []string{"line 2: ", "named by a value alone"}},
		{"clients set client_ip=nobody --plan gold", exitUsage, []string{"accepted: an address or a CIDR"}},
		{"clients get hash:header:X-API-Key=swordfish", exitOK, []string{"hash:header:X-Api-Key=#", "plan gold"}},
	} {
		checkStep(t, s)
	}
	list, _, _ := runProgram("clients", "list")
	_, rest, _ := strings.Cut(list, "hash:")
	name, _, _ := strings.Cut("hash:"+rest, " ")
	if strings.Contains(list, "swordfish") || len(name) != len("hash:header:X-Api-Key=#")+43 {
		t.Errorf("the list is %s", list)
	}
	checkStep(t, step{"clients delete " + name + " client_ip=2001:db8:1:2::", exitOK, []string{"2 of 2 deleted"}})
}
