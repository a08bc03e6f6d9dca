package header

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
)

// Pitfall H1: a Retry-After in seconds, however many, or in any of the three forms that a date of HTTP has.
func TestH1ReadRetryAfter(t *testing.T) {
	at := now.Truncate(time.Second)
	for _, test := range []struct {
		values []string
		date   string // of the answer
		want   time.Duration
		ok     bool
	}{
		{[]string{"30"}, "", 30 * time.Second, true},
		{[]string{" 30 "}, "", 30 * time.Second, true},
		{[]string{"0"}, "", 0, true},
		{[]string{"007"}, "", 7 * time.Second, true},
		{[]string{"99999999999999999999999999"}, "", Longest, true},
		{[]string{"315360001"}, "", Longest, true},
		{[]string{at.Add(time.Minute).UTC().Format(http.TimeFormat)}, "", time.Minute - 1, true},
		{[]string{at.Add(time.Minute).UTC().Format(time.ANSIC)}, "", time.Minute - 1, true},
		{[]string{at.Add(time.Minute).UTC().Format("Monday, 02-Jan-06 15:04:05 GMT")}, "", time.Minute - 1, true},
		{[]string{at.Add(-time.Minute).UTC().Format(http.TimeFormat)}, "", 0, true},
		{[]string{"Fri, 31 Dec 9999 23:59:59 GMT"}, "", Longest, true},
		// The clock of the server is an hour ahead.
		{[]string{at.Add(61 * time.Minute).UTC().Format(http.TimeFormat)}, at.Add(time.Hour).UTC().Format(http.TimeFormat), time.Minute, true},
		{[]string{at.Add(time.Minute).UTC().Format(http.TimeFormat)}, "no date", time.Minute - 1, true},
		{[]string{"10", "30", "20"}, "", 30 * time.Second, true},
		{[]string{"soon", "20"}, "", 20 * time.Second, true},
		{[]string{"2, 3"}, "", 3 * time.Second, true},
		{[]string{"30, soon,,2"}, "", 30 * time.Second, true},
		{[]string{"2, " + at.Add(time.Minute).UTC().Format(http.TimeFormat) + ", 3"}, "", time.Minute - 1, true},
		{[]string{at.Add(2*time.Minute).UTC().Format(http.TimeFormat) + "," + at.Add(time.Minute).UTC().Format(time.ANSIC)}, "", 2*time.Minute - 1, true},
		{nil, "", 0, false},
		{[]string{""}, "", 0, false},
		{[]string{"-1"}, "", 0, false},
		{[]string{"+1"}, "", 0, false},
		{[]string{"1.5"}, "", 0, false},
		{[]string{"soon"}, "", 0, false},
		{[]string{"2027-01-15T08:01:00Z"}, "", 0, false},
		{[]string{at.Add(time.Minute).UTC().Format(time.RFC1123)}, "", 0, false}, // which says UTC in place of GMT
	} {
		h := http.Header{"Retry-After": test.values, "Date": {test.date}}
		if r := Read(h, now); r.RetryAfter != test.want || r.Retry != test.ok {
			t.Errorf("%q: %v, %v, want %v, %v", test.values, r.RetryAfter, r.Retry, test.want, test.ok)
		}
	}
}

func TestReadLimits(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		h    http.Header
		want []State
	}{
		"draft 11": {
			http.Header{"Ratelimit-Policy": {`"a";q=100;w=60, "b";q=9;qu="content-bytes"`}, "Ratelimit": {`"a";r=50;t=30, "b";r=1`, `"c";r=0;t=1`}},
			[]State{{"a", 50, 30 * s, 100, 60 * s, "", ""}, {"b", 1, 0, 9, 0, "content-bytes", ""}, {"c", 0, 1 * s, 0, 0, "", ""}},
		},
		"a malformed list is ignored as a whole": {http.Header{"Ratelimit": {`"a";r=50;t=30`, `"b";r`, `c=`}}, nil},
		"a malformed policy is ignored":          {http.Header{"Ratelimit-Policy": {`"a";q=1`, `=`}, "Ratelimit": {`"a";r=5`}}, []State{{Name: "a", Remaining: 5}}},
		"malformed members are ignored":          {http.Header{"Ratelimit": {`a;r=1, 3;r=1, "b", "c";r=-1, "d";r=1;t=x, "e";r=5`}}, []State{{Name: "e", Remaining: 5}}},
		"a name twice":                           {http.Header{"Ratelimit": {`"a";r=5, "a";r=3;t=1, "a";r=3;t=2, "a";r=4`}}, []State{{Name: "a", Remaining: 3, Within: 2 * s}}},
		"a name in two partitions": {
			http.Header{"Ratelimit": {`"a";r=1;t=5;pk=:YQ==:, "a";r=0;t=50;pk=:Yg==:, "a";r=7;t=1`}, "Ratelimit-Policy": {`"a";q=9;w=60;pk=:Yg==:, "a";q=8`}},
			[]State{{Name: "a", Remaining: 1, Within: 5 * s, Quota: 8, Partition: "a"}, {"a", 0, 50 * s, 9, 60 * s, "", "b"}, {Name: "a", Remaining: 7, Within: s, Quota: 8}},
		},
		"milliseconds":              {http.Header{"Ratelimit": {`"a";r=0;t=1;weir-ms=50`}}, []State{{Name: "a", Within: 50 * time.Millisecond}}},
		"milliseconds of some":      {http.Header{"Ratelimit": {`"a";r=1;t=1;weir-ms=50`}}, []State{{Name: "a", Remaining: 1, Within: s}}},
		"more milliseconds than it": {http.Header{"Ratelimit": {`"a";r=0;t=1;weir-ms=5000`}}, []State{{Name: "a", Within: s}}},
		"milliseconds, malformed":   {http.Header{"Ratelimit": {`"a";r=0;t=1;weir-ms=0.5, "b";r=0;t=1;weir-ms=0, "c";r=0;weir-ms=5`}}, []State{{Name: "a", Within: s}, {Name: "b", Within: s}, {Name: "c"}}},
		"x as a time in two years":  {http.Header{"X-Ratelimit-Remaining": {"3"}, "X-Ratelimit-Reset": {"1863072000"}}, []State{{Remaining: 3}}},
		"for ever":                  {http.Header{"Ratelimit": {`"a";r=5;t=999999999999999`}}, []State{{Name: "a", Remaining: 5, Within: Longest}}},
		"too long":                  {http.Header{"Ratelimit": {strings.Repeat(`"a";r=5, `, mostBytes/9) + `"a";r=5`}}, nil},
		"out of a cache":            {http.Header{"Age": {"0"}, "Ratelimit": {`"a";r=5`}, "X-Ratelimit-Remaining": {"5"}}, nil},
		"only a policy":             {http.Header{"Ratelimit-Policy": {`"a";q=1`}}, nil},
		"draft 11 wins":             {http.Header{"Ratelimit": {`"a";r=5`}, "X-Ratelimit-Remaining": {"3"}}, []State{{Name: "a", Remaining: 5}}},
		"an old draft":              {http.Header{"Ratelimit-Limit": {"9"}, "Ratelimit-Remaining": {"3"}, "Ratelimit-Reset": {"7"}}, []State{{Remaining: 3, Within: 7 * s, Quota: 9}}},
		"x in seconds":              {http.Header{"X-Ratelimit-Limit": {"9"}, "X-Ratelimit-Remaining": {"3"}, "X-Ratelimit-Reset": {"7"}}, []State{{Remaining: 3, Within: 7 * s, Quota: 9}}},
		"x in a year":               {http.Header{"X-Ratelimit-Remaining": {"3"}, "X-Ratelimit-Reset": {"31536000"}}, []State{{Remaining: 3, Within: year * s}}},
		"x in more than a year":     {http.Header{"X-Ratelimit-Remaining": {"3"}, "X-Ratelimit-Reset": {"31536001"}}, []State{{Remaining: 3}}},
		"x as a time":               {http.Header{"X-Ratelimit-Remaining": {"3"}, "X-Ratelimit-Reset": {"1800000060"}}, []State{{Remaining: 3, Within: 60*s - 1}}},
		"x as a time that is over":  {http.Header{"X-Ratelimit-Remaining": {"3"}, "X-Ratelimit-Reset": {"1799999999"}}, []State{{Remaining: 3}}},
		"x that is no time":         {http.Header{"X-Ratelimit-Remaining": {"3"}, "X-Ratelimit-Reset": {"9223372036854775807"}}, []State{{Remaining: 3}}},
		"x without reset":           {http.Header{"X-Ratelimit-Remaining": {"3"}}, []State{{Remaining: 3}}},
		"x without remaining":       {http.Header{"X-Ratelimit-Limit": {"3"}, "X-Ratelimit-Reset": {"7"}}, nil},
		"x malformed":               {http.Header{"X-Ratelimit-Remaining": {"-3"}, "X-Ratelimit-Reset": {"7"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Read(test.h, now).Limits; !slices.Equal(got, test.want) {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// Of a list that is longer than any server's, the first are read.
func TestReadsABoundedList(t *testing.T) {
	var all []string
	for i := range mostMembers + 1 {
		all = append(all, fmt.Sprintf(`"%d";r=1`, i))
	}
	if n := len(Read(http.Header{"Ratelimit": all}, now).Limits); n != mostMembers {
		t.Errorf("%d are read, want %d", n, mostMembers)
	}
}

// What Write wrote, Read reads back.
func TestReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var each []admission.Standing
		for range rapid.IntRange(1, 5).Draw(t, "limits") {
			each = append(each, admission.Standing{
				Name: string(rapid.SliceOfN(rapid.ByteRange(' ', '~'), 0, 20).Draw(t, "name")), Limit: anyLimit(t),
				Decision: weir.Decision{
					Allowed: true, Remaining: rapid.Int64Range(0, most).Draw(t, "remaining"), ResetAfter: time.Duration(rapid.Int64Range(0, int64(Longest)).Draw(t, "reset")),
				},
			})
		}
		h := http.Header{}
		Draft11.Write(h, each, now)
		for _, s := range each {
			w := windowOf(&s.Limit)
			want := State{Name: s.Name, Remaining: s.Decision.Remaining, Within: bounded(w.seconds(&s.Decision)), Quota: s.Limit.Count}
			if exact, _ := w.within(&s.Decision); s.Decision.Remaining == 0 && exact > 0 && exact <= 999*time.Millisecond && w.period/w.count <= soon {
				want.Within = (exact + time.Millisecond - 1).Truncate(time.Millisecond)
			}
			if s.Limit.Algorithm == weir.Concurrent {
				want.Unit = "concurrent-requests"
			} else if s.Limit.Period%time.Second == 0 {
				want.Window = s.Limit.Period
			}
			if got := Read(h, now).Limits; namesakes(each, s.Name) == 1 && !slices.Contains(got, want) {
				t.Errorf("%+v of %q, want %+v", got, h, want)
			}
		}
	})
}

func namesakes(each []admission.Standing, name string) (n int) {
	for _, s := range each {
		if s.Name == name {
			n++
		}
	}
	return n
}

// Whatever an answer says, it is read without a panic and within bounds, and joined by Write to what Read reads.
func FuzzRead(f *testing.F) {
	f.Add("30", `"a";q=100;w=60, "b";q=1`, `"a";r=50;t=30`, "100", "50", "60")
	f.Add("Sun, 06 Nov 1994 08:49:37 GMT", `"a";q=1;pk=:YQ==:`, `"a";r=1;pk=:YQ==:`, "", "", "1800000000")
	f.Add("", `("a" "b");q=1`, `a;r=@1;t=%"x"`, "-1", "99999999999999999999", "1.5")
	f.Fuzz(func(t *testing.T, retry, policy, limit, xlimit, xleft, xreset string) {
		h := http.Header{
			"Retry-After": {retry}, "Ratelimit-Policy": {policy, policy}, "Ratelimit": {limit},
			"X-Ratelimit-Limit": {xlimit}, "X-Ratelimit-Remaining": {xleft}, "X-Ratelimit-Reset": {xreset},
		}
		check := func(r Report) {
			if r.RetryAfter < 0 || r.RetryAfter > Longest {
				t.Errorf("Retry-After %q is %v", retry, r.RetryAfter)
			}
			for _, s := range r.Limits {
				if s.Remaining < 0 || s.Within < 0 || s.Within > Longest || s.Quota < 0 || s.Window < 0 || s.Window > Longest {
					t.Errorf("%q: %+v", h, s)
				}
			}
		}
		check(Read(h, now))
		before := Read(h, now)
		(Draft11 | XRateLimit).Write(h, []admission.Standing{allowed("fuzz", 1)}, now)
		after := Read(h, now)
		check(after)
		if len(after.Limits) == 0 || !slices.ContainsFunc(after.Limits, func(s State) bool { return s.Name == "fuzz" && s.Remaining <= 1 }) {
			t.Errorf("what was written can't be read: %q", h)
		}
		for _, s := range before.Limits {
			if same := func(o State) bool { return o.Name == s.Name && o.Remaining <= s.Remaining }; s.Name != "" && !slices.ContainsFunc(after.Limits, same) {
				t.Errorf("%+v is lost in %q", s, h)
			}
		}
	})
}
