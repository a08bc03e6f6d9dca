package server_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
)

// adminPaths are the paths of an operator, with bodies for those of POST.
var adminPaths = map[string]string{
	"/metrics": "", "/v1/status": "", "/v1/explain": `{"path":"/login"}`, "/debug/pprof/": "", "/debug/pprof/heap": "", "/debug/pprof/goroutine": "",
}

// request sends a request to an address and returns the status and the body.
func request(t *testing.T, a net.Addr, path, body string) (int, string) {
	t.Helper()
	var res *http.Response
	var err error
	if body == "" {
		res, err = http.Get("http://" + a.String() + path)
	} else {
		res, err = http.Post("http://"+a.String()+path, "application/json", strings.NewReader(body))
	}
	text := read(t, res, err)
	return res.StatusCode, text
}

// An operator's paths are on the admin listener only, and those of clients on the data port only.
func TestAdminPathsAreApart(t *testing.T) {
	s := start(t, server.Config{Policies: written(t, policies)})
	for path, body := range adminPaths {
		if status, text := request(t, s.AdminAddr(), path, body); status != http.StatusOK {
			t.Errorf("admin %s: %d %s", path, status, text)
		}
		if status, text := request(t, s.HTTPAddr(), path, body); status != http.StatusNotFound || !strings.Contains(text, "weir serve --admin") {
			t.Errorf("data %s: %d %s, want 404 with the place where it is", path, status, text)
		}
	}
	const take = `{"key":"k","limit":"1/1h"}`
	for path, body := range map[string]string{"/v1/take": take, "/v1/reset": take, "/v1/check": "{}", "/v1/commit": "{}"} {
		if status, text := request(t, s.AdminAddr(), path, body); status != http.StatusNotFound || !strings.Contains(text, "weir serve --http") {
			t.Errorf("admin %s: %d %s, want 404 with the place where it is", path, status, text)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml"} {
		for _, a := range []net.Addr{s.AdminAddr(), s.HTTPAddr()} {
			if status, text := request(t, a, path, ""); status != http.StatusOK {
				t.Errorf("%s at %v: %d %s", path, a, status, text)
			}
		}
	}
}

// Without the admin listener its paths are nowhere: nobody who can reach the data port reads them.
func TestAdminOff(t *testing.T) {
	s := start(t, server.Config{Admin: server.Off, Policies: written(t, policies)})
	if a := s.AdminAddr(); a != nil {
		t.Errorf("the admin listener is at %v", a)
	}
	for path, body := range adminPaths {
		if status, text := request(t, s.HTTPAddr(), path, body); status != http.StatusNotFound {
			t.Errorf("data %s: %d %s", path, status, text)
		}
	}
	if status, text := request(t, s.HTTPAddr(), "/readyz", ""); status != http.StatusOK || text != "ok\n" {
		t.Errorf("/readyz: %d %q", status, text)
	}
}

// The protections of HTTP hold on the admin listener.
func TestAdminRefusesForeignPages(t *testing.T) {
	s := start(t, server.Config{HTTPHosts: []string{"weir.example.com"}})
	for path := range adminPaths {
		for host, status := range map[string]int{"weir.example.com": 0, "other.example.com": http.StatusForbidden} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.AdminAddr().String()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			res, err := http.DefaultClient.Do(r)
			if text := read(t, res, err); (res.StatusCode == http.StatusForbidden) != (status == http.StatusForbidden) {
				t.Errorf("%s under the Host %s: %d %s", path, host, res.StatusCode, text)
			}
			if h := res.Header; h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.AdminAddr().String()+"/v1/explain", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://other.example.com")
	res, err := http.DefaultClient.Do(r)
	if text := read(t, res, err); res.StatusCode != http.StatusForbidden {
		t.Errorf("explain for a page of another origin: %d %s", res.StatusCode, text)
	}
}

// A second server on one machine is refused the port of the first, as for the other ports: without
// the refusal, an operator would read the metrics of one server as those of the other.
func TestAdminPortInUse(t *testing.T) {
	first := start(t, server.Config{})
	s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: first.AdminAddr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	config, ok := errors.AsType[*server.ConfigError](s.Open(t.Context()))
	if !ok || config.Field != "admin" || !strings.Contains(config.Accept, "off") {
		t.Errorf("got %+v, want an error of admin that accepts off", config)
	}
}
