package access_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/access"
)

func parse(tb testing.TB, text string) *access.Table {
	tb.Helper()
	table, err := access.Parse([]byte(text), "users")
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

func TestMay(t *testing.T) {
	table := parse(t, `
# services
user web on cert:dns:web.example.com +take +check ~policy:login ~policy:api-* ~name:api:* ~name: ~key:user:* ~key:all
user ops on cert:cn:ops +refund +admin ~name:* ~key:*
user all on cert:cn:all +@all ~*
user nothing on cert:cn:nothing
`)
	for _, c := range []struct {
		user, name, key string
		right           access.Right
		want            bool
	}{
		{"web", "api:v1", "user:42", access.Take, true},
		{"web", "", "user:42", access.Take, true},
		{"web", "api:", "all", access.Take, true},
		{"web", "api", "all", access.Take, false},
		{"web", "login", "all", access.Take, false}, // a policy
		{"web", "api:v1", "all2", access.Take, false},
		{"web", "api:v1", "", access.Take, false},
		{"web", "api:v1", "User:42", access.Take, false},
		{"web", "login", "user:1", access.Check, true},
		{"web", "login2", "user:1", access.Check, false},
		{"web", "api-", "user:1", access.Check, true},
		{"web", "api:v1", "user:1", access.Check, false}, // a name
		{"web", "api:v1", "user:1", access.Refund, false},
		{"web", "", "", access.Admin, false},
		{"web", "", "", access.None, true},
		{"ops", "x", "y", access.Take, false},
		{"ops", "x", "y", access.Refund, true},
		{"ops", "", "", access.Admin, true},
		{"ops", "x", "y", access.Check, false},
		{"all", "x", "y", access.Check, true},
		{"all", "x", "y", access.Take, true},
		{"nothing", "", "", access.Admin, false},
		{"nothing", "", "", access.None, true},
		{"nobody", "x", "y", access.Take, false},
		{"nobody", "", "", access.None, false},
	} {
		u := table.User(c.user)
		if got := u.May(c.right, c.name, c.key); got != c.want {
			t.Errorf("user %s, right %v of %q, %q: %v", c.user, c.right, c.name, c.key, got)
		}
		if u == nil {
			continue
		}
		if may, why := u.Explain(c.right, c.name, c.key); may != c.want || why == "" || may != (why == "yes") {
			t.Errorf("user %s, right %v of %q, %q is explained: %v, %s", c.user, c.right, c.name, c.key, may, why)
		}
	}
}

// Patterns match as a list of all of them would.
func TestPatternsThatOverlap(t *testing.T) {
	words := []string{"a", "a*", "ab", "ab*", "abc", "b", "ba*", "a/b*", "", "~", "é*"}
	keys := []string{"", "a", "ab", "abc", "abd", "ac", "b", "ba", "bab", "bb", "a/", "a/b", "a/bc", "~", "~~", "é", "éa", "è", "\x00", "\xff"}
	for set := range 1 << len(words) {
		var chosen []string
		line := "user u on cert:cn:u +take ~name:*"
		for i, word := range words {
			if set&(1<<i) != 0 {
				chosen, line = append(chosen, word), line+" ~key:"+word
			}
		}
		if len(chosen) == 0 {
			continue
		}
		u := parse(t, line).User("u")
		for _, key := range keys {
			want := false
			for _, word := range chosen {
				prefix, is := strings.CutSuffix(word, "*")
				want = want || word == key || is && strings.HasPrefix(key, prefix)
			}
			if got := u.May(access.Take, "n", key); got != want {
				t.Fatalf("%q match %q: %v", chosen, key, got)
			}
		}
	}
}

func TestInvalidFiles(t *testing.T) {
	const good = "user a on cert:cn:a +take ~*\n"
	long := strings.Repeat("x", 257)
	many := "user u on cert:cn:u +take ~name:*"
	for range 65 {
		many += " ~key:" + strings.Repeat("k", len(many)%250)
	}
	for _, c := range []struct{ text, want string }{
		{"alice on", "line 1: "},
		{"\n\nusers alice on", "users:3: line begins with"},
		{"user alice", "ends early"},
		{"user al:ice on", `user "al:ice"; accepted: 1 to 64 letters`},
		{"user " + strings.Repeat("a", 65) + " on", "accepted: 1 to 64 letters"},
		{"user alice yes cert:cn:a", "accepted: on, off"},
		{good + good, "users:2: user a is defined twice"},
		{"user alice on", "has neither a secret nor a certificate"},
		{"user alice on nopass", "has a word of 6 characters; accepted: #HASH"},
		{"user alice on >hunter2hunter2", "a secret in clear text; accepted: #HASH, as weir users add makes it"},
		{"user alice on cert:cn:a +takes ~*", `has the right "+takes"; accepted: +take, +check`},
		{"user alice on cert:cn:a -take ~*", "accepted: #HASH"},
		{"user alice on cert:cn:a +take +take ~*", "twice"},
		{"user alice on cert:cn:a +take", "has the right take, and no ~name: pattern"},
		{"user alice on cert:cn:a +take ~name:*", "and no ~key: pattern"},
		{"user alice on cert:cn:a +check ~key:*", "has the right check, and no ~policy: pattern"},
		{"user alice on cert:cn:a +admin ~key:*", "has ~key: patterns, and no right that they apply to"},
		{"user alice on cert:cn:a +take ~* ~key:a", "has ~* and other patterns"},
		{"user alice on cert:cn:a +take ~name:a*b ~key:*", `has the pattern "~name:a*b"; accepted: a text`},
		{"user alice on cert:cn:a +take ~name:" + long + " ~key:*", patternRefused},
		{"user alice on cert:cn:a +take ~names:a ~key:*", "accepted: ~policy:PATTERN"},
		{many, "has more than 64 patterns"},
		{"user alice on cert:ou:a +take ~*", "accepted: cert:cn:NAME"},
		{"user alice on cert:cn: +take ~*", "accepted: cert:cn:NAME"},
		{"user alice on cert:dns:A.b +take ~*\nuser bob on cert:dns:a.B", "which user alice has"},
		{"user alice on #secret +take ~*", "hash of unknown form or strength"},
		{"user alice on #$2b$09$" + strings.Repeat("a", 53), "a cost of 10 to 14"},
		{"user alice on #$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$" + strings.Repeat("a", 43), "m of 7168 to"},
		{"user alice on #$argon2id$v=19$m=262144,t=5,p=1$c2FsdHNhbHQ$" + strings.Repeat("a", 43), "m times t up to"},
		{"user alice on #$argon2id$v=19$t=1,m=7168,p=1$c2FsdHNhbHQ$" + strings.Repeat("a", 43), "hash of unknown form"},
		{"user a\xff on", "users:1: line is not UTF-8"},
		{strings.Repeat("#", 5<<20), "has more than 4194304 bytes"},
	} {
		table, err := access.Parse([]byte(c.text), "users")
		var file access.FileError
		if table != nil || !errors.As(err, &file) || !strings.Contains(err.Error(), strings.TrimPrefix(c.want, "line 1: ")) {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
			continue
		}
		if p := file[0]; p.Line < 1 || p.Field == "" || p.Value == "" || p.Accept == "" {
			t.Errorf("%.60q: the problem is %+v", c.text, p)
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
	_, err := access.Parse([]byte(strings.Repeat("user\n", 100)), "users")
	var file access.FileError
	if !errors.As(err, &file) || len(file) != 10 {
		t.Errorf("of 100 problems %d are listed", len(file))
	}
}

const patternRefused = "accepted: a text of up to 256 bytes"

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "# a\n", "user a on cert:cn:a +take ~*\n", "user a off\r\nuser b on cert:uri:spiffe://x/y +check ~policy:a* ~key:\n", "user a on #$2b$10$x", "user \x00 on",
		"user a on #$argon2id$v=19$m=7168,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA +@all ~*",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := access.Parse([]byte(text), "users")
		if (table == nil) == (err == nil) {
			t.Fatalf("%v, error %v", table, err)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "users:") {
				t.Fatalf("error %v", err)
			}
			return
		}
		for _, name := range table.Names() {
			u := table.User(name)
			if u.Name() != name || u.May(access.Take, "", "") && !u.Has(access.Take) || u.Describe() == "" {
				t.Fatalf("user %q: %s", name, u.Describe())
			}
		}
	})
}

func manyPatterns(tb testing.TB) *access.User {
	line := "user u on cert:cn:u +take +check"
	for i := range 21 {
		n := string(rune('a' + i))
		line += " ~name:api-" + n + ":* ~key:user-" + n + ":* ~policy:" + n
	}
	return parse(tb, line).User("u")
}

func TestMayDoesNotAllocate(t *testing.T) {
	u := manyPatterns(t)
	if !u.May(access.Take, "api-m:x", "user-m:42") || u.May(access.Take, "api-z:x", "user-m:42") {
		t.Fatal("wrong decision")
	}
	if n := testing.AllocsPerRun(100, func() { u.May(access.Take, "api-m:x", "user-m:42") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMay(b *testing.B) {
	users := map[string]*access.User{
		"all": parse(b, "user u on cert:cn:u +@all ~*").User("u"), "one": parse(b, "user u on cert:cn:u +take ~name:api-m:* ~key:user-*").User("u"),
		"many": manyPatterns(b),
	}
	for name, u := range users {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !u.May(access.Take, "api-m:x", "user-m:42") {
					b.Fatal("refused")
				}
			}
		})
	}
}
