package server_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testcert"
	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// countedStore is a store that counts as an engine's does.
type countedStore struct {
	store.Store
	breaker *store.Breaker
}

func (countedStore) Counts() store.Counts { return store.Counts{} }

func (s countedStore) Breaker() *store.Breaker { return s.breaker }

var (
	typeLine = regexp.MustCompile(`^# TYPE (weir_\w+) (\w+)\n$`)
	sample   = regexp.MustCompile(`^(weir_\w+?)(?:\{(.*)\})? \S+\n$`)
	label    = regexp.MustCompile(`(\w+)="[^"]*",?`)
	row      = regexp.MustCompile("^\\| `(weir_\\w+)` \\| (\\w+) \\|([^|]*)\\|")
)

// exported adds the metrics of a text: "type labels" by name.
func exported(t *testing.T, text string, all map[string]string) {
	t.Helper()
	types, seen := map[string]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		if m := typeLine.FindStringSubmatch(line); m != nil {
			types[m[1]] = m[2]
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := m[1]
		if base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""); types[base] == "histogram" {
			name = base
		}
		var labels []string
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		slices.Sort(labels)
		form := types[name] + " " + strings.Join(labels, ",")
		if seen[name] != "" && seen[name] != form {
			t.Errorf("%s has %s and %s", name, seen[name], form)
		}
		seen[name] = form
	}
	maps.Copy(all, seen)
}

// docs/metrics.md has every metric of the server with its type and labels, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	ctx, url := context.Background(), "sqlite:"+filepath.Join(t.TempDir(), "clients.db")
	db, err := clients.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := map[string]string{}
	pair := testcert.New(t).Issue(t, "weir")
	exported(t, get(t, start(t, server.Config{TLSCert: pair.Cert, TLSKey: pair.Key}), "/metrics"), all)
	s := start(t, server.Config{Users: usersFile(t, "user ops on SECRET +admin\n"), Audit: filepath.Join(t.TempDir(), "audit.jsonl")})
	res, err := http.Get("http://ops:secret@" + s.AdminAddr().String() + "/metrics")
	exported(t, read(t, res, err), all)
	s = start(t, server.Config{Policies: written(t, policies), Clients: url, ProxyProtocolFrom: []string{"10.0.0.0/8"}})
	post(t, s, "/v1/take", `{"key":"k","limit":"5/1h"}`)
	exported(t, get(t, s, "/metrics"), all)
	breaker := store.NewBreaker(store.BreakerOptions{})
	defer breaker.Close()
	s = start(t, server.Config{Opened: countedStore{panicStore{memory.New(memory.Options{})}, breaker}})
	_, _ = store.Through(ctx, breaker.Circuit(""), func(context.Context) (int, error) { return 0, nil })
	c, err := net.Dial("tcp", s.RESPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = fmt.Fprint(c, "WEIR.TAKE k 5/1h\r\n")
	_, _ = c.Read(make([]byte, 1)) // the connection ends by a panic
	exported(t, get(t, s, "/metrics"), all)
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if m := row.FindStringSubmatch(line); m != nil {
			labels := strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) })
			slices.Sort(labels)
			documented[m[1]] = m[2] + " " + strings.Join(labels, ",")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if documented[name] != all[name] {
			t.Errorf("%s is %q, and in docs/metrics.md %q", name, all[name], documented[name])
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("docs/metrics.md has %s, the server has not", name)
	}
}

// Each decision is counted once in the durations of its protocol and operation.
func TestDecisionsAreTimed(t *testing.T) {
	s := start(t, server.Config{Policies: written(t, policies)})
	redis(t, s, "WEIR.TAKE k 5/1h", 7)
	redis(t, s, "WEIR.TAKE k 5/1h\r\nWEIR.TAKE l 5/1h\r\nWEIR.TAKE k 5/1h COST 0\r\nWEIR.REFUND k 5/1h\r\nPING\r\nWEIR.TAKEALL k 5/1h AND l 5/1h\r\nMULTI\r\nCL.THROTTLE k 1 1 1\r\nEXEC", 30)
	redis(t, s, "WEIR.CHECK PATH /login", 1)
	redis(t, s, "WEIR.TAKE k none", 1) // no decision
	post(t, s, "/v1/take", `{"key":"k","limit":"5/1h"}`)
	post(t, s, "/v1/take", `{"key":"k","limit":"none"}`) // no decision
	post(t, s, "/v1/reset", `{"key":"k","limit":"5/1h"}`)
	post(t, s, "/v1/check", `{"path":"/login"}`)
	metrics := get(t, s, "/metrics")
	for _, want := range []string{
		`weir_decision_seconds_count{operation="take",protocol="resp"} 4`,
		`weir_decision_seconds_count{operation="peek",protocol="resp"} 1`,
		`weir_decision_seconds_count{operation="refund",protocol="resp"} 1`,
		`weir_decision_seconds_count{operation="take_all",protocol="resp"} 1`,
		`weir_decision_seconds_count{operation="check",protocol="resp"} 1`,
		`weir_decision_seconds_count{operation="take",protocol="http"} 1`,
		`weir_decision_seconds_count{operation="reset",protocol="http"} 1`,
		`weir_decision_seconds_count{operation="check",protocol="http"} 1`,
		`weir_decision_seconds_bucket{operation="take",protocol="resp",le="+Inf"} 4`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("metrics have no %s:\n%s", want, weirOnly(metrics))
		}
	}
	if strings.Contains(metrics, `operation="settle"`) {
		t.Error("operations without decisions have durations")
	}
}
