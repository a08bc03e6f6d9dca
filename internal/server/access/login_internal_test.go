package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func from(address string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(address), Port: 7} }

// weak returns a hash of a secret with the least parameters.
func weak(text string) string { return "#" + weakHash(text) }

// open returns the users of a file, whose verifications are counted and take no time: a secret is
// right if the hash of the file is weak of it.
func open(t *testing.T, text string) (u *Users, path string, verified *atomic.Int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "users")
	write(t, path, text)
	u, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	verified = new(atomic.Int64)
	u.logins.verify = func(h *hash, text string) bool {
		verified.Add(1)
		return h.text == weakHash(text)
	}
	return u, path, verified
}

// weakHash returns a text of the form of a hash, which depends on the secret.
func weakHash(text string) string {
	return fmt.Sprintf("$argon2id$v=19$m=7168,t=1,p=1$c2FsdHNhbHQ$%x", []byte(fmt.Sprintf("%024s", text)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func alice(secret string) string { return "user alice on " + weak(secret) + " +take ~*\n" }

func TestLogin(t *testing.T) {
	u, _, verified := open(t, alice("right")+"user bob off "+weak("right")+" +take ~*\nuser carol on cert:cn:carol +take ~*\nuser dora on "+weak("old")+" "+weak("new")+" +admin\n")
	for i, c := range []struct {
		name, secret string
		want         error
		costs        int64
	}{
		{"alice", "right", nil, 1}, {"alice", "right", nil, 0}, {"alice", "wrong", ErrWrong, 1},
		{"dora", "new", nil, 2}, {"dora", "old", nil, 1}, {"dora", "new", nil, 0}, {"dora", "right", ErrWrong, 2},
		{"alice", "", ErrWrong, 0}, {"alice", strings.Repeat("x", 257), ErrWrong, 0}, {strings.Repeat("a", 65), "right", ErrWrong, 0},
	} {
		before := verified.Load()
		user, err := u.Login(t.Context(), c.name, c.secret, from("192.0.2.1"))
		if !errors.Is(err, c.want) || (err == nil) != (user != nil && user.Name() == c.name) {
			t.Errorf("%d: user %v, error %v, want %v", i, user, err, c.want)
		}
		if got := verified.Load() - before; got != c.costs {
			t.Errorf("%d: %d verifications, want %d", i, got, c.costs)
		}
	}
	// unknown, off and without a secret: as slow as a known user
	for _, name := range []string{"nobody", "bob", "carol", ""} {
		before := verified.Load()
		if _, err := u.Login(t.Context(), name, "right", from("192.0.2.1")); !errors.Is(err, ErrWrong) || verified.Load() == before {
			t.Errorf("user %q: error %v after %d verifications", name, err, verified.Load()-before)
		}
	}
}

// A real hash is verified: argon2id of Hash, and bcrypt of htpasswd.
func TestHashes(t *testing.T) {
	hashed, err := Hash("secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{hashed, "#$2y$10$abcdefghijklmnopqrstuuihD9rd8C4QZUNC2jk8X8E0XRLTPdKcK"} {
		h, ok := parseHash(word[1:])
		if !ok {
			t.Fatalf("%s is no hash", word)
		}
		if h.matches("Secret") || h.matches("") {
			t.Error("a wrong secret matches")
		}
		if word == hashed && !h.matches("secret") {
			t.Error("the right secret does not match")
		}
	}
	for _, secret := range []string{"", strings.Repeat("x", 257)} {
		if _, err := Hash(secret); err == nil {
			t.Errorf("a secret of %d bytes has a hash", len(secret))
		}
	}
}

// Failures of an address are limited, and never keep others out: neither the same user at another
// address, nor a client that has logged in before.
func TestFailuresAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _, verified := open(t, alice("right")+"user bob on "+weak("bob's")+" +take ~*\n")
		if _, err := u.Login(t.Context(), "bob", "bob's", from("192.0.2.1")); err != nil {
			t.Fatal(err)
		}
		before, limited := verified.Load(), 0
		for i := range 1000 {
			_, err := u.Login(t.Context(), "alice", fmt.Sprint("guess", i), from("192.0.2.1"))
			if limit, ok := errors.AsType[*LimitError](err); ok {
				limited++
				if limit.RetryAfter <= 0 || limit.RetryAfter > time.Minute {
					t.Errorf("retry after %v", limit.RetryAfter)
				}
			} else if !errors.Is(err, ErrWrong) {
				t.Error(err)
			}
		}
		if n := verified.Load() - before; n > 31 || n+int64(limited) != 1000 {
			t.Errorf("1000 guesses cost %d verifications; %d are limited", n, limited)
		}
		var limit *LimitError
		if _, err := u.Login(t.Context(), "alice", "right", from("192.0.2.1")); !errors.As(err, &limit) {
			t.Errorf("the right secret from the address of the guesses: %v", err)
		}
		// the same name from a further network, and the verified user of the address
		for name, address := range map[string]string{"alice": "198.51.100.1", "bob": "192.0.2.1"} {
			if _, err := u.Login(t.Context(), name, map[string]string{"alice": "right", "bob": "bob's"}[name], from(address)); err != nil {
				t.Errorf("%s from %s: %v", name, address, err)
			}
		}
		// alice is verified now, also at the address of the guesses
		if _, err := u.Login(t.Context(), "alice", "right", from("192.0.2.1")); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if _, err := u.Login(t.Context(), "bob", "wrong", from("192.0.2.1")); !errors.Is(err, ErrWrong) {
			t.Errorf("after a minute: %v", err)
		}
		// addresses of one network share the failures of a name
		limited = 0
		for i := range 250 {
			if _, err := u.Login(t.Context(), "alice", "guess", from(fmt.Sprintf("203.0.113.%d", i))); errors.As(err, &limit) {
				limited++
			}
		}
		if limited != 250-30 {
			t.Errorf("of 250 guesses from one network %d are limited", limited)
		}
	})
}

// A flood of wrong logins computes one hash after another, and a client with a verified secret waits
// for none of them.
func TestFloodDoesNotSlowVerifiedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _, _ := open(t, alice("right"))
		if _, err := u.Login(t.Context(), "alice", "right", from("192.0.2.9")); err != nil {
			t.Fatal(err)
		}
		var now, most, total atomic.Int64
		hold := make(chan struct{})
		u.logins.verify = func(*hash, string) bool {
			most.Store(max(most.Load(), now.Add(1)))
			total.Add(1)
			<-hold
			now.Add(-1)
			return false
		}
		var all sync.WaitGroup
		var busy atomic.Int64
		for i := range 2000 {
			all.Go(func() {
				_, err := u.Login(t.Context(), "alice", fmt.Sprint("guess", i), from(fmt.Sprintf("2001:db8:%x::1", i%1000)))
				if errors.Is(err, ErrBusy) {
					busy.Add(1)
				}
			})
		}
		synctest.Wait()
		for range 1000 { // in the time of none
			if _, err := u.Login(t.Context(), "alice", "right", from("192.0.2.9")); err != nil {
				t.Fatal(err)
			}
		}
		if n := busy.Load(); n != 2000-maxWaiting {
			t.Errorf("%d of 2000 are turned away at once, want all but %d", n, maxWaiting)
		}
		if n := most.Load(); n != int64(cap(u.logins.slots)) {
			t.Errorf("%d verifications at once, want %d", n, cap(u.logins.slots))
		}
		close(hold)
		all.Wait()
		if u.logins.count != 0 || len(u.logins.flights) != 0 || len(u.logins.waiting) != 0 {
			t.Errorf("after the flood %d logins, %d flights, %d addresses are left", u.logins.count, len(u.logins.flights), len(u.logins.waiting))
		}
	})
}

// Users of one address may log in at once, as after a restart.
func TestUsersOfOneAddressLogInAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file strings.Builder
		for i := range 12 {
			file.WriteString(strings.Replace(alice("right"), "alice", fmt.Sprint("user", i), 1))
		}
		u, _, _ := open(t, file.String())
		hold := make(chan struct{})
		u.logins.verify = func(*hash, string) bool { <-hold; return true }
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				if _, err := u.Login(t.Context(), fmt.Sprint("user", i), "right", from("192.0.2.1")); err != nil {
					t.Errorf("user%d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		close(hold)
		all.Wait()
	})
}

// Connections of a pool that log in at once cost one verification, and no failure.
func TestPoolLogsInAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _, verified := open(t, alice("right"))
		check := u.logins.verify
		u.logins.verify = func(h *hash, text string) bool {
			time.Sleep(20 * time.Millisecond)
			return check(h, text)
		}
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				if _, err := u.Login(t.Context(), "alice", "right", from("192.0.2.1")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := verified.Load(); n != 1 {
			t.Errorf("%d verifications", n)
		}
		// a login that ends early is no failure
		for i := range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			u.logins.slots <- struct{}{} // all are taken
			for len(u.logins.slots) < cap(u.logins.slots) {
				u.logins.slots <- struct{}{}
			}
			time.AfterFunc(time.Millisecond, cancel)
			if _, err := u.Login(ctx, "alice", fmt.Sprint("other", i), from("192.0.2.1")); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			for len(u.logins.slots) > 0 {
				<-u.logins.slots
			}
		}
	})
}

// A change of the file takes effect on open sessions at their next command.
func TestRevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, path, _ := open(t, alice("right"))
		s := u.Session(from("192.0.2.1"), nil)
		if s.User() != nil {
			t.Fatal("a new session has a user")
		}
		login := func(secret string, want error) {
			t.Helper()
			if err := s.Login(t.Context(), "alice", secret); !errors.Is(err, want) {
				t.Fatalf("%v, want %v", err, want)
			}
		}
		login("wrong", ErrWrong)
		login("right", nil)
		login("wrong", ErrWrong) // and the session stays
		if !s.User().Has(Take) || s.User().Has(Admin) {
			t.Fatal("wrong rights")
		}
		reload := func(text string) {
			t.Helper()
			write(t, path, text)
			if err := u.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		reload("user alice on " + weak("right") + " +admin\n")
		if !s.User().Has(Admin) || s.User().Has(Take) {
			t.Error("the rights are the old ones")
		}
		reload("user alice on " + weak("new") + " " + weak("right") + " +admin\n") // rotation
		if s.User() == nil {
			t.Error("the session ended with a second secret")
		}
		for _, text := range []string{"user alice on " + weak("new") + " +admin\n", "user alice off " + weak("right") + " +admin\n", "user bob on " + weak("right") + " +admin\n", ""} {
			reload(alice("right"))
			login("right", nil)
			if s.User() == nil {
				t.Fatal("no user")
			}
			if reload(text); s.User() != nil {
				t.Errorf("the session goes on after %q", text)
			}
			reload(alice("right"))
			if s.User() != nil {
				t.Error("the session begins again by itself")
			}
		}
	})
}

func certificate(cn string, names ...string) *tls.ConnectionState {
	cert := &x509.Certificate{Subject: pkix.Name{CommonName: cn}}
	for _, name := range names {
		kind, value, _ := strings.Cut(name, ":")
		switch kind {
		case "dns":
			cert.DNSNames = append(cert.DNSNames, value)
		case "email":
			cert.EmailAddresses = append(cert.EmailAddresses, value)
		case "uri":
			uri, _ := url.Parse(value)
			cert.URIs = append(cert.URIs, uri)
		}
	}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
}

func TestCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "user web on cert:cn:web cert:dns:web.example.com cert:uri:spiffe://x/web +take ~*\n" +
			"user ops on cert:email:ops@example.com " + "+admin\nuser gone off cert:cn:gone +admin\n"
		u, path, _ := open(t, text+alice("right"))
		unverified := certificate("web")
		unverified.VerifiedChains = nil
		for _, c := range []struct {
			state *tls.ConnectionState
			want  string
		}{
			{certificate("web"), "web"}, {certificate("x", "dns:WEB.example.com"), "web"}, {certificate("", "uri:spiffe://x/web"), "web"},
			{certificate("", "email:ops@example.com"), "ops"}, {certificate("web", "dns:web.example.com"), "web"},
			{certificate("web", "email:ops@example.com"), ""}, // two users
			{certificate("gone"), ""}, {certificate("gone", "dns:web.example.com"), ""}, {certificate("Web"), ""}, {certificate("x", "dns:*.example.com"), ""},
			{certificate("web.example.com"), ""}, {unverified, ""}, {nil, ""},
		} {
			got := ""
			if user := u.Session(from("192.0.2.1"), c.state).User(); user != nil {
				got = user.Name()
			}
			if got != c.want {
				t.Errorf("%v: user %q, want %q", identities(c.state), got, c.want)
			}
		}
		s := u.Session(from("192.0.2.1"), certificate("web"))
		if err := s.Login(t.Context(), "alice", "right"); err != nil || s.User().Name() != "alice" {
			t.Fatalf("%v, user %s", err, s.User().Name())
		}
		if s.Logout(); s.User().Name() != "web" {
			t.Errorf("after the login the user is %s", s.User().Name())
		}
		write(t, path, strings.Replace(text, "cert:cn:web ", "", 1))
		if err := u.Reload(); err != nil {
			t.Fatal(err)
		}
		if s.User() != nil {
			t.Error("a certificate without its name in the file has a user")
		}
		write(t, path, text)
		if err := u.Reload(); err != nil || s.User() == nil {
			t.Errorf("%v, user %v", err, s.User())
		}
	})
}

// A broken file keeps the users in use.
func TestBrokenFileKeepsTheUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		path := filepath.Join(t.TempDir(), "users")
		write(t, path, alice("right"))
		u, err := Open(path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		file := u.file()
		look := func() {
			data, err := file.Read(t.Context())
			_ = file.Apply(data, err)
		}
		write(t, path, "user alice")
		look()
		look() // for the reason may be gone
		if s := u.Status(); s.Err == nil || s.Failed.IsZero() || s.Users != 1 || u.Table().User("alice") == nil {
			t.Errorf("status %+v", s)
		}
		if n := strings.Count(log.String(), "refused"); n != 1 || !strings.Contains(log.String(), "users:1") {
			t.Errorf("%d lines in the log:\n%s", n, log.String())
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := u.Reload(); err == nil || !strings.Contains(err.Error(), "mode 0644") {
			t.Errorf("a file that everybody can read: %v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(t, path, "")
		look()
		if s := u.Status(); s.Err != nil || s.Users != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// Sessions, logins and reloads at once: the race detector looks on.
func TestSessionsDuringReloads(t *testing.T) {
	u, path, _ := open(t, alice("right"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s := u.Session(from("192.0.2.1"), nil)
			for range 500 {
				if s.User() == nil {
					_ = s.Login(t.Context(), "alice", "right")
				}
				if user := s.User(); user != nil && user.Name() != "alice" {
					t.Error("another user")
				}
			}
		})
	}
	for i := range 50 {
		text := alice("right")
		if i%2 == 0 {
			text = alice("other")
		}
		_ = u.apply([]byte(text), nil, true)
	}
	all.Wait()
	_ = path
}
