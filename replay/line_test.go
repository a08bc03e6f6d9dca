package replay

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

const stamp = "[17/May/2015:10:05:03 +0000]"

func TestLinesOfEveryFormatAreCutIntoFields(t *testing.T) {
	const agent = `"http://example.com/" "Mozilla/5.0 (X; \"Y\" \\)"`
	for _, c := range []struct{ name, text, want string }{
		{"combined", `192.0.2.1 - alice ` + stamp + ` "GET /a?b=c HTTP/1.1" 200 5 ` + agent, `192.0.2.1|alice||GET|/a|Mozilla/5.0 (X; \"Y\" \\)|`},
		{"common", `192.0.2.1 - - ` + stamp + ` "GET / HTTP/1.0" 304 -`, `192.0.2.1|||GET|/||`},
		{"virtual host", `example.com:443 192.0.2.1 - - ` + stamp + ` "GET / HTTP/2.0" 200 1 "-" "-"`, `192.0.2.1||example.com:443|GET|/||`},
		{"virtual host without port", `example.com 2001:db8::1 - - ` + stamp + ` "GET / HTTP/2.0" 200 1`, `2001:db8::1||example.com|GET|/||`},
		{"virtual host, client by name", `example.com:80 client.example.net - bob ` + stamp + ` "GET / HTTP/2.0" 200 1`, `client.example.net|bob|example.com:80|GET|/||`},
		{"IPv6", `2001:db8::1 - - ` + stamp + ` "GET / HTTP/1.1" 200 1`, `2001:db8::1|||GET|/||`},
		{"user with spaces", `2001:db8::1 - john q public ` + stamp + ` "GET / HTTP/1.1" 200 1`, `2001:db8::1|john q public||GET|/||`},
		{"empty user", `192.0.2.1 - "" ` + stamp + ` "GET / HTTP/1.1" 401 1`, `192.0.2.1|||GET|/||`},
		{"user like a time", `192.0.2.1 - [x] ` + stamp + ` "GET / HTTP/1.1" 401 1`, `192.0.2.1|[x]||GET|/||`},
		{"no identity", `client.example.net ` + stamp + ` "GET / HTTP/1.1" 200 1`, `client.example.net|||GET|/||`},
		{"no request", `192.0.2.1 - - ` + stamp + ` "-" 408 -`, `192.0.2.1||||||`},
		{"handshake as request", `192.0.2.1 - - ` + stamp + ` "\x16\x03 \x01" 400 226`, `192.0.2.1||||||`},
		{"no version", `192.0.2.1 - - ` + stamp + ` "GET /a b" 400 226`, `192.0.2.1|||GET|/a b||`},
		{"space in path", `192.0.2.1 - - ` + stamp + ` "GET /a b HTTP/1.1" 200 226`, `192.0.2.1|||GET|/a b||`},
		{"more fields", `192.0.2.1 - - ` + stamp + ` "GET / HTTP/1.1" 200 1 "-" "curl/8" "203.0.113.9" 0.012`, `192.0.2.1|||GET|/|curl/8|`},
		{"unquoted fields", `192.0.2.1 - - ` + stamp + ` "GET / HTTP/1.1" 200 1 0.012`, `192.0.2.1|||GET|/||`},
		{"NULs first", "\x00\x00\x00192.0.2.1 - - " + stamp + ` "GET /` + "\x00\xff" + ` HTTP/1.1" 200 1`, "192.0.2.1|||GET|/\x00\xff||"},
		{"cut in request", `192.0.2.1 - - ` + stamp + ` "GET /lon`, `192.0.2.1|||GET|/lon||the request has no closing quote`},
		{"cut after request", `192.0.2.1 - - ` + stamp + ` "GET / HTTP/1.1" 200`, `192.0.2.1|||GET|/||no status and size after the request`},
		{"cut in referrer", `192.0.2.1 - - ` + stamp + ` "GET / HTTP/1.1" 200 1 "http`, `192.0.2.1|||GET|/||the referrer has no closing quote`},
		{"cut in agent", `192.0.2.1 - - ` + stamp + ` "GET / HTTP/1.1" 200 1 "-" "Mozi\"`, `192.0.2.1|||GET|/|Mozi\"|the user agent has no closing quote`},
	} {
		var l line
		if reason := l.parse([]byte(c.text)); reason != "" {
			t.Errorf("%s: %s", c.name, reason)
			continue
		}
		got := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s", l.address, l.user, l.host, l.method, l.path, l.agent, l.cut)
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if want := int64(1431857103); l.second != want {
			t.Errorf("%s: second %d, want %d", c.name, l.second, want)
		}
	}
}

func TestLinesThatAreNoRequestsSayWhy(t *testing.T) {
	for _, c := range []struct{ text, reason string }{
		{"", "empty line"},
		{"\x00\x00 \t", "empty line"},
		{"#Fields: date time", "no [time]"},
		{`192.0.2.1 - - ` + stamp, "no [time] with a quoted request"},
		{`192.0.2.1 - - 17/May/2015] "GET / HTTP/1.1" 200 1`, "no [time]"},
		{stamp + ` "GET / HTTP/1.1" 200 1`, "no client"},
		{`192.0.2.1 - - [2015-05-17T10:05:03Z] "GET / HTTP/1.1" 200 1`, `time "2015-05-17T10:05:03Z"; accepted: `},
		{`192.0.2.1 - - [31/Feb/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`, `time "31/Feb/2015:10:05:03 +0000"`},
		{`192.0.2.1 - - [` + strings.Repeat("9", 1000) + `] "GET / HTTP/1.1" 200 1`, `99..."; accepted: `},
	} {
		var l line
		if reason := l.parse([]byte(c.text)); !strings.Contains(reason, c.reason) {
			t.Errorf("%q: got %q, want %q", c.text, reason, c.reason)
		}
	}
}

const stampLayout = "02/Jan/2006:15:04:05 -0700"

func TestTimesAreThoseOfTheStandardLibrary(t *testing.T) {
	zone := time.FixedZone("", -(9*3600 + 30*60))
	end := time.Date(2074, 1, 1, 0, 0, 0, 0, zone)
	for at := time.Date(1970, 1, 1, 0, 0, 0, 0, zone); at.Before(end); at = at.Add(11*time.Hour + 59*time.Minute + 7*time.Second) {
		text := at.Format(stampLayout)
		if got, reason := parseStamp([]byte(text)); reason != "" || got != at.Unix() {
			t.Fatalf("%s: got %d (%s), want %d", text, got, reason, at.Unix())
		}
	}
}

func TestALeapSecondIsTheSecondAfterIt(t *testing.T) {
	leap, reason := parseStamp([]byte("31/Dec/2016:23:59:60 +0000"))
	next, _ := parseStamp([]byte("01/Jan/2017:00:00:00 +0000"))
	if reason != "" || leap != next {
		t.Errorf("got %d (%s), want %d", leap, reason, next)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`192.0.2.1 - - ` + stamp + ` "GET / HTTP/1.1" 200 1 "-" "Mozi\"`,
		`h:1 ::1 - - ` + stamp + ` "\" HTTP/" 200 1 "-" "-"`,
		stamp + ` "`, "[", `] "`, `[] "`, " [", "\x00", `x [31/Dec/2073:23:59:60 -2359] "`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		var l line
		reason := l.parse(text)
		if !bytes.Equal(text, before) {
			t.Fatal("the line was written to")
		}
		if reason == "" && len(l.address) == 0 {
			t.Fatal("a request of no client")
		}
		for _, name := range Fields() {
			if !bytes.Contains(text, l.field(name)) {
				t.Fatalf("%s %q is not in the line", name, l.field(name))
			}
		}
		if reason != "" {
			return
		}
		// The time is the one that the standard library reads, where it reads one: it knows no leap seconds.
		end := bytes.Index(text, []byte(`] "`))
		if at, err := time.Parse(stampLayout, string(text[max(0, end-stampLength):end])); err == nil && at.Unix() != l.second {
			t.Fatalf("second %d, want %d", l.second, at.Unix())
		}
	})
}
