package identity_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/identity"
)

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func with(fields ...string) *http.Request {
	r := from("192.0.2.7:1")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestWhatRequestsSay(t *testing.T) {
	for _, c := range []struct {
		s          identity.Source
		r          *http.Request
		want, name string
	}{
		{identity.Header("x-api-key"), with("X-Api-Key", "k1"), "k1", "header:X-Api-Key"},
		{identity.Header("X-API-Key"), with("x-api-key", "k1", "X-Api-Key", "k2"), "k1", "header:X-Api-Key"},
		{identity.Header("X-Api-Key"), with("X-Api-Key", "", "X-Api-Key", "k2"), "", "header:X-Api-Key"},
		{identity.Header("X-Api-Key"), with(), "", "header:X-Api-Key"},
		{identity.Header("a|b"), with("A|b", "x"), "x", "header:A%7Cb"},
		{identity.Header("A%7Cb"), with("A%7cb", "x"), "x", "header:A%257cb"},
		{identity.Header("authorization"), with("Authorization", "Bearer secret"), hash("Bearer secret"), "header:Authorization"},
		{identity.Header("Proxy-Authorization"), with("Proxy-Authorization", "x"), hash("x"), "header:Proxy-Authorization"},
		{identity.Header("cookie"), with("Cookie", "a=b"), hash("a=b"), "header:Cookie"},
		{identity.Header("Authorization"), with(), "", "header:Authorization"},
		{identity.Header("Authorization"), with("Authorization", ""), "", "header:Authorization"},
		{identity.Cookie("sid"), with("Cookie", "other=1; sid=s1; sid=s2"), hash("s1"), "cookie:sid"},
		{identity.Cookie("sid"), with("Cookie", "SID=s1"), "", "cookie:sid"},
		{identity.Cookie("sid"), with("Cookie", "sid="), "", "cookie:sid"},
		{identity.Cookie("sid"), with(), "", "cookie:sid"},
		{identity.Hashed(identity.Header("X-Api-Key")), with("X-Api-Key", "k1"), hash("k1"), "header:X-Api-Key"},
		{identity.Hashed(identity.Header("X-Api-Key")), with(), "", "header:X-Api-Key"},
		{identity.BasicUser(), with("Authorization", basic("bob:secret")), "bob", "basic_user"},
		{identity.BasicUser(), with("Authorization", basic("bob:")), "bob", "basic_user"},
		{identity.BasicUser(), with("Authorization", basic(":secret")), "", "basic_user"},
		{identity.BasicUser(), with("Authorization", basic("bob")), "", "basic_user"},
		{identity.BasicUser(), with("Authorization", "Basic %"), "", "basic_user"},
		{identity.BasicUser(), with("Authorization", "Bearer "+basic("bob:x")), "", "basic_user"},
		{identity.BasicUser(), with("Authorization", basic(strings.Repeat("b", 6000)+":x")), strings.Repeat("b", 6000), "basic_user"},
		{identity.BasicUser(), with("Authorization", basic(strings.Repeat("b", 6200)+":x")), "", "basic_user"},
		{identity.BasicUser(), with(), "", "basic_user"},
		{identity.Everyone(), with(), "all", "all"},
	} {
		if got := c.s.Value(c.r); got != c.want || c.s.String() != c.name || c.s.Err() != nil {
			t.Errorf("%s finds %.50q in %.100q, want %.50q of %s (%v)", c.s, got, fmt.Sprint(c.r.Header), c.want, c.name, c.s.Err())
		}
	}
}

// What is secret is in no key, also where that has what was found first.
func TestSecretsAreInNoKey(t *testing.T) {
	r := with("Authorization", basic("bob:hunter2"), "Cookie", "sid=hunter2", "X-Api-Key", "hunter2")
	for _, s := range []identity.Source{
		identity.Header("Authorization"), identity.Cookie("sid"), identity.Header("Cookie"), identity.Hashed(identity.Header("X-Api-Key")), identity.BasicUser(),
		identity.First(identity.Cookie("sid"), identity.Peer.Source()), identity.Hashed(identity.First(identity.Header("X-Api-Key"))),
	} {
		key := identity.Key{s, identity.Everyone()}.Of(r)
		if strings.Contains(key, "hunter2") || strings.Contains(key, base64.StdEncoding.EncodeToString([]byte("hunter2"))) || strings.HasPrefix(key, "-") {
			t.Errorf("by %s the key is %q", s, key)
		}
	}
}

type contextKey struct{}

type (
	user   string
	number uint16
	named  struct{ name string }
)

func (n *named) String() string { return n.name }

// Pitfall H9: a value of the context is read from there, and not from a header of that name.
func TestH9ContextIsTheContext(t *testing.T) {
	s := identity.Context("user", contextKey{})
	r := with("user", "mallory", "context:user", "mallory", "contextKey", "mallory")
	if got := s.Value(r); got != "" || s.String() != "context:user" {
		t.Errorf("%s is %q without a value in the context, want nothing", s, got)
	}
	for _, c := range []struct {
		value any
		want  string
	}{
		{"alice", "alice"},
		{user("alice"), "alice"},
		{&named{"alice"}, "alice"},
		{time.Second, "1s"},
		{-7, "-7"},
		{number(7), "7"},
		{uint64(1) << 63, "9223372036854775808"},
		{"", ""},
		{nil, ""},
		{(*named)(nil), ""},
		{(*user)(nil), ""},
		{named{"alice"}, ""},
		{1.5, ""},
		{[]byte("alice"), ""},
		{map[string]int(nil), ""},
	} {
		if got := s.Value(r.WithContext(context.WithValue(r.Context(), contextKey{}, c.value))); got != c.want {
			t.Errorf("%#v is %q, want %q", c.value, got, c.want)
		}
	}
	// A key of another type is another key, as the context has it.
	if got := identity.Context("user", "user").Value(r.WithContext(context.WithValue(r.Context(), contextKey{}, "alice"))); got != "" {
		t.Errorf("another key finds %q", got)
	}
}

// Pitfall H10: a key that comes of what is verified falls back to the address, so that made-up tokens don't buy budgets.
func TestH10InvalidTokensAreCountedByAddress(t *testing.T) {
	verified := identity.Func("bearer:sub", func(r *http.Request) string {
		if r.Header.Get("Authorization") == "Bearer good" { // stands for a signature
			return "alice"
		}
		return ""
	})
	key := identity.Key{identity.First(verified, identity.Peer.Source())}
	if err := key.Err(); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if got := key.Of(with("Authorization", fmt.Sprintf("Bearer invalid-%d", i))); got != "client_ip=192.0.2.7" {
			t.Fatalf("invalid token %d has the key %q", i, got)
		}
	}
	if got := key.Of(with("Authorization", "Bearer good")); got != "bearer:sub=alice" {
		t.Errorf("a good token has the key %q", got)
	}
	// And nobody's subject is an address.
	as := func(subject string) string {
		return identity.Key{identity.First(identity.Func("bearer:sub", func(*http.Request) string { return subject }), identity.Peer.Source())}.Of(with())
	}
	if as("192.0.2.7") == as("") || as("client_ip=192.0.2.7") == as("") {
		t.Error("a subject is taken for an address")
	}
}

func TestSourcesThatAreRefused(t *testing.T) {
	all, find := identity.Everyone(), func(*http.Request) string { return "x" }
	long := strings.Repeat("x", 129)
	var many []identity.Source
	for i := range 8 {
		many = append(many, identity.Func(fmt.Sprint(i, strings.Repeat("x", 127)), find))
	}
	for name, c := range map[string]struct {
		s    identity.Source
		want string
	}{
		"no name":                    {identity.Func("", find), "a source's name is empty; accepted: letters"},
		"a name with a comma":        {identity.Func("a,b", find), `a source's name is "a,b"`},
		"a name with =":              {identity.Func("a=b", find), `a source's name is "a=b"`},
		"a name with |":              {identity.Func("a|b", find), `a source's name is "a|b"`},
		"a long name":                {identity.Func(long, find), `a source's name is "xxx`},
		"no function":                {identity.Func("a", nil), "a is a nil function"},
		"a header that is none":      {identity.Header("X Api"), `a header's name is "X Api"`},
		"a header with a colon":      {identity.Header("X-Api:"), `a header's name is "X-Api:"`},
		"a header beyond ASCII":      {identity.Header("X-\u00c4pi"), `a header's name is "X-`},
		"a long header":              {identity.Header(long), `a header's name is "xxx`},
		"the host":                   {identity.Header("host"), `a header's name is "host"; accepted: up to 128 letters`},
		"the trailers":               {identity.Header("trailer"), `a header's name is "trailer"`},
		"the encoding of the body":   {identity.Header("Transfer-Encoding"), `a header's name is "Transfer-Encoding"`},
		"a cookie that is none":      {identity.Cookie("a=b"), `a cookie's name is "a=b"`},
		"no cookie":                  {identity.Cookie(""), "a cookie's name is empty"},
		"a long cookie":              {identity.Cookie(long), `a cookie's name is "xxx`},
		"the nil key":                {identity.Context("user", nil), "the key of context:user is <nil>; accepted: what context.WithValue takes"},
		"a key of no context":        {identity.Context("user", []byte("x")), "the key of context:user is []uint8"},
		"a context with a bad name":  {identity.Context("a b", 1), `a source's name is "context:a b"`},
		"first of nothing":           {identity.First(), "First is of 0 sources; accepted: 1 to 8"},
		"first of many":              {identity.First(append(many, all)...), "First is of 9 sources"},
		"first of the zero Source":   {identity.First(all, identity.Source{}), "a source is the zero Source"},
		"first of a refused one":     {identity.First(identity.First(identity.Cookie("")), all), "a cookie's name is empty"},
		"first of one name twice":    {identity.First(all, identity.Cookie("a"), identity.Cookie("a")), "First is of two sources called cookie:a"},
		"first of names together":    {identity.First(identity.First(many...), all), "First is of sources whose names have"},
		"the hash of the zero":       {identity.Hashed(identity.Source{}), "a source is the zero Source"},
		"the hash of a refused one":  {identity.Hashed(identity.Cookie("")), "a cookie's name is empty"},
		"the zero Source":            {identity.Source{}, "a source is the zero Source"},
		"a network without any bits": {identity.Peer.Network(0, 64), "client_ip's bits of IPv4 is 0; accepted: 1 to 32"},
	} {
		var e *identity.SourceError
		if err := c.s.Err(); !asSourceError(err, &e) || !strings.HasPrefix(err.Error(), "identity: "+c.want) || e.Accept == "" || len(err.Error()) > 400 {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if got := c.s.Value(with()); got != "" {
			t.Errorf("%s finds %q", name, got)
		}
	}
}
