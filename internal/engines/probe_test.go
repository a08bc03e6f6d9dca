package engines_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testcert"
	"github.com/weirlimit/weir/internal/testengine"
)

func TestMain(m *testing.M) {
	engines.SetProbeTime(time.Minute)
	code := m.Run()
	testengine.Close()
	os.Exit(code)
}

// daemon runs a weir server until the test ends, and returns the address of its Redis protocol.
func daemon(t *testing.T, cfg server.Config) string {
	t.Helper()
	cfg.RESP, cfg.HTTP, cfg.Admin = "0", server.Off, server.Off
	s, err := server.New(cfg)
	if err == nil {
		err = s.Open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s.RESPAddr().String()
}

// The error for a URL with the wrong scheme names the right scheme, and no password.
func TestServersOfOtherProtocols(t *testing.T) {
	host := func(url string) string {
		_, rest, _ := strings.Cut(url, "://")
		rest = rest[strings.IndexByte(rest, '@')+1:]
		end := strings.IndexAny(rest+"/", "/?")
		return rest[:end]
	}
	redis, memcached, postgres := host(testengine.Redis(t).URL()), host(testengine.Memcached(t).URL()), host(testengine.Postgres(t).URL())
	locked := host(testengine.Redis(t, "--requirepass", "other").URL())
	tls, plain := httptest.NewTLSServer(nil), httptest.NewServer(nil)
	defer tls.Close()
	authority := testcert.New(t)
	pair := authority.Issue(t, "weir")
	weir, weirs := daemon(t, server.Config{}), daemon(t, server.Config{TLSCert: pair.Cert, TLSKey: pair.Key})
	defer plain.Close()
	secure, web := tls.Listener.Addr().String(), plain.Listener.Addr().String()
	for url, want := range map[string]string{
		"rediss://u:swordfish@" + redis + "?dial_timeout=200ms":      redis + " does not speak TLS; accepted: redis://",
		"rediss://u:swordfish@" + locked + "?dial_timeout=200ms":     locked + " does not speak TLS; accepted: redis://",
		"rediss+cluster://" + redis + "/?dial_timeout=200ms":         redis + " does not speak TLS; accepted: redis+cluster://",
		"redis://u:swordfish@" + secure + "?dial_timeout=200ms":      secure + " speaks TLS; accepted: rediss://",
		"redis://" + postgres + "?dial_timeout=200ms":                postgres + " speaks the protocol of postgres; accepted: postgres://",
		"redis://" + memcached + "?dial_timeout=200ms":               memcached + " speaks the protocol of memcached; accepted: memcached://",
		"redis://" + web + "?dial_timeout=200ms":                     web + " speaks HTTP; accepted: the port of the engine",
		"postgres://u:swordfish@" + redis + "/db?connect_timeout=1":  redis + " speaks the protocol of Redis; accepted: redis://, or weir://",
		"postgres://u:swordfish@" + secure + "/db?connect_timeout=1": secure + " speaks TLS at once, which postgres:// does not",
		"memcached://" + redis + "?timeout=200ms":                    redis + " speaks the protocol of Redis",
		"weir://" + memcached + "?timeout=200ms":                     memcached + " speaks the protocol of memcached; accepted: memcached://",
		"weirs://u:swordfish@" + weir + "?timeout=200ms":             weir + " does not speak TLS; accepted: weir://",
		"weir://u:swordfish@" + weirs + "?timeout=1m":                weirs + " speaks TLS; accepted: weirs://",
		"weirs://" + weirs + "?timeout=1m":                           "certificate signed by unknown authority",
		"redis://u:swordfish@" + locked:                              "WRONGPASS",
		"redis://127.0.0.1:1":                                        "connection refused",
		"redis+sentinel://:swordfish@" + redis + "/m":                "this is a server that is none",
	} {
		s, err := engines.Open(t.Context(), url, engines.Options{})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}
