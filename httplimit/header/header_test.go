package header

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
)

var now = time.Unix(1_800_000_000, 1)

func standing(name, limit string, d weir.Decision) admission.Standing {
	l := weir.MustParseLimit(limit)
	if d.Limit == 0 {
		d.Limit = l.Capacity()
	}
	return admission.Standing{Name: name, Limit: l, Decision: d}
}

func allowed(name string, remaining int64) admission.Standing {
	return standing(name, "100/1m", weir.Decision{Allowed: true, Remaining: remaining, ResetAfter: time.Minute})
}

func denied(name string, remaining int64) admission.Standing {
	return standing(name, "100/1m", weir.Decision{Remaining: remaining, RetryAfter: 9 * time.Second, ResetAfter: time.Minute})
}

func expect(t *testing.T, h http.Header, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name, values := range h {
		if got[name] = strings.Join(values, "\n"); len(values) != 1 {
			t.Errorf("%s has %d lines: %q", name, len(values), values)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("\ngot  %q\nwant %q", got, want)
	}
}

func TestWrite(t *testing.T) {
	each := []admission.Standing{allowed("a", 50), allowed("b", 5), allowed("c", 5)}
	lists := map[string]string{
		"Ratelimit-Policy": `"a";q=100;w=60, "b";q=100;w=60, "c";q=100;w=60`,
		"Ratelimit":        `"a";r=50;t=30, "b";r=5;t=3, "c";r=5;t=3`,
	}
	x := map[string]string{"X-Ratelimit-Limit": "100", "X-Ratelimit-Remaining": "5", "X-Ratelimit-Reset": "60"}
	unix := map[string]string{"X-Ratelimit-Limit": "100", "X-Ratelimit-Remaining": "5", "X-Ratelimit-Reset": "1800000061"}
	both := maps.Clone(lists)
	maps.Copy(both, x)
	for f, want := range map[Formats]map[string]string{0: {}, None: {}, Draft11: lists, XRateLimit: x, XRateLimitUnix: unix, Draft11 | XRateLimit: both} {
		h := http.Header{}
		f.Write(h, each, now)
		expect(t, h, want)
	}
	h := http.Header{}
	(Draft11 | XRateLimit).Write(h, nil, now)
	expect(t, h, map[string]string{})
}

func TestErr(t *testing.T) {
	for f := range 256 {
		want := f < 16 && f&6 != 6 && (f == 8 || f&8 == 0)
		if err := Formats(f).Err(); (err == nil) != want {
			t.Errorf("%#b: %v", f, err)
		}
	}
}

func TestXIsOfTheTightest(t *testing.T) {
	for _, test := range []struct {
		each []admission.Standing
		want string
	}{
		{[]admission.Standing{allowed("a", 9), allowed("b", 3), allowed("c", 5)}, "3"},
		{[]admission.Standing{allowed("a", 3), denied("b", 7), allowed("c", 1)}, "7"},
		{[]admission.Standing{denied("a", 7), denied("b", 2), allowed("c", 1)}, "2"},
		{[]admission.Standing{allowed("a", -3)}, "0"},
	} {
		h := http.Header{}
		XRateLimit.Write(h, test.each, now)
		if got := h.Get("X-Ratelimit-Remaining"); got != test.want {
			t.Errorf("%v: %s, want %s", test.each, got, test.want)
		}
	}
}

// Pitfall H5: limits that are stacked give one coherent set of fields, also with what other software wrote.
func TestH5Lists(t *testing.T) {
	for name, test := range map[string]struct {
		policies, limits        []string
		each                    []admission.Standing
		wantPolicies, wantLimit string
	}{
		"another limit": {
			[]string{`"x";q=10;w=1`}, []string{`"x";r=9;t=1`}, []admission.Standing{allowed("a", 50)},
			`"x";q=10;w=1, "a";q=100;w=60`, `"x";r=9;t=1, "a";r=50;t=30`,
		},
		"several lines, with spaces": {
			[]string{`"x";q=10;w=1 ,  "y";q=5`, `"z";q=1`}, []string{`"x";r=9;t=1`, ` "y"; r=5`, `"z";r=1`}, []admission.Standing{allowed("a", 50)},
			`"x";q=10;w=1, "y";q=5, "z";q=1, "a";q=100;w=60`, `"x";r=9;t=1, "y";r=5, "z";r=1, "a";r=50;t=30`,
		},
		"what others say besides is kept": {
			[]string{`"x";q=10;qu="content-bytes";pk=:YWJj:;acme-burst=3`}, []string{`"x";r=9;pk=:YWJj:`}, []admission.Standing{allowed("a", 50)},
			`"x";q=10;qu="content-bytes";pk=:YWJj:;acme-burst=3, "a";q=100;w=60`, `"x";r=9;pk=:YWJj:, "a";r=50;t=30`,
		},
		"equal name, less left there": {
			[]string{`"a";q=10;w=1`}, []string{`"a";r=9;t=1`}, []admission.Standing{allowed("a", 50)}, `"a";q=10;w=1`, `"a";r=9;t=1`,
		},
		"equal name, more left there": {
			[]string{`"x";q=1, "a";q=10;w=1`}, []string{`"x";r=1, "a";r=51;t=1`}, []admission.Standing{allowed("a", 50)},
			`"x";q=1, "a";q=100;w=60`, `"x";r=1, "a";r=50;t=30`,
		},
		"equal name, as much left for longer": {
			[]string{`"a";q=10;w=90`}, []string{`"a";r=50;t=31`}, []admission.Standing{allowed("a", 50)}, `"a";q=10;w=90`, `"a";r=50;t=31`,
		},
		"equal name, denied here": {
			[]string{`"a";q=10;w=1`}, []string{`"a";r=9;t=1`}, []admission.Standing{denied("a", 50)}, `"a";q=100;w=60`, `"a";r=50;t=9`,
		},
		"equal name, written otherwise": {
			[]string{`"caf%C3%A9 \"";q=1`}, []string{`"caf%C3%A9 \"";r=51`}, []admission.Standing{allowed("café \"", 50)},
			`"caf%C3%A9 \"";q=100;w=60`, `"caf%C3%A9 \"";r=50;t=30`,
		},
		"a policy alone": {
			[]string{`"a";q=10;w=1`, `"b";q=1`}, nil, []admission.Standing{allowed("a", 50)}, `"a";q=100;w=60, "b";q=1`, `"a";r=50;t=30`,
		},
		"a limit alone": {
			nil, []string{`"a";r=3`, `"b";r=1`}, []admission.Standing{allowed("a", 50)}, `"a";q=100;w=60`, `"a";r=3, "b";r=1`,
		},
		"twice there": {
			[]string{`"x";q=10`, `"x";q=11`}, []string{`"x";r=9;t=1`, `"x";r=3;t=1, "x";r=3;t=2, "x";r=4`}, []admission.Standing{allowed("a", 50)},
			`"x";q=10, "a";q=100;w=60`, `"x";r=3;t=2, "a";r=50;t=30`,
		},
		"malformed": {
			[]string{`100;w=60`, `"x"`, `"y";q=-1`, `"z";q=1;w=0`, `"u";q=1;qu=3`, `"p";q=1;pk=x`, `("in");q=1`, `"open`, `x;q=1`, `limit=100, remaining=3`, ``},
			[]string{`100`, `"x"`, `"y";r=-1`, `"z";r=1;t=-1`, `"u";r=1.5`, `"p";r=1;pk=1`, `("in");r=1`, `"open`, `x;r=1`, "\x00", ``},
			[]admission.Standing{allowed("a", 50)}, `"a";q=100;w=60`, `"a";r=50;t=30`,
		},
		"more than anybody says": {
			[]string{strings.Repeat(`"x";q=1, `, mostBytesTold/9+1) + `"y";q=1`}, []string{strings.Repeat(`"x";r=1, `, mostBytesTold/9+1) + `"y";r=1`}, []admission.Standing{allowed("a", 50)},
			`"a";q=100;w=60`, `"a";r=50;t=30`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Ratelimit-Policy": test.policies, "Ratelimit": test.limits}
			Draft11.Write(h, test.each, now)
			expect(t, h, map[string]string{"Ratelimit-Policy": test.wantPolicies, "Ratelimit": test.wantLimit})
		})
	}
}

// Pitfall H5: of many limits, or such with long names, each is told, whatever middleware comes after.
func TestH5ManyLimits(t *testing.T) {
	const many = 1000
	for _, long := range []string{"", strings.Repeat("n", 40)} {
		h := http.Header{}
		var outer []admission.Standing
		for i := range many {
			outer = append(outer, allowed(long+strconv.Itoa(i), 50))
		}
		Draft11.Write(h, outer, now)
		for i := range 3 {
			Draft11.Write(h, []admission.Standing{allowed("inner"+strconv.Itoa(i), 3)}, now)
		}
		for _, name := range []string{"Ratelimit", "Ratelimit-Policy"} {
			list := strings.Split(h.Get(name), ", ")
			if len(h[name]) != 1 || len(list) != many+3 || !strings.HasPrefix(list[0], `"`+long+`0";`) || !strings.HasPrefix(list[many+2], `"inner2";`) {
				t.Errorf("%s has %d lines, the first of %d limits, %q to %q", name, len(h[name]), len(list), list[0], list[len(list)-1])
			}
		}
	}
}

// Pitfall H5: whatever writes first, the fields say the same of each limit.
func TestH5AnyOrder(t *testing.T) {
	layers := []admission.Standing{allowed("a", 50), allowed("b", 3), denied("c", 7), allowed("b", 9)}
	want := []string{`"a";r=50;t=30`, `"b";r=3;t=2`, `"c";r=7;t=9`}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}} {
		h := http.Header{}
		for _, i := range order {
			(Draft11 | XRateLimit).Write(h, layers[i:i+1], now)
		}
		got := strings.Split(h.Get("Ratelimit"), ", ")
		slices.Sort(got)
		if !slices.Equal(got, want) || len(h["Ratelimit"]) != 1 || len(h["Ratelimit-Policy"]) != 1 {
			t.Errorf("%v: %q", order, h)
		}
	}
}

// Pitfall H5: X-RateLimit-* are of one limit, the tightest, on a line each.
func TestH5X(t *testing.T) {
	three := func(limit, left, reset []string) http.Header {
		return http.Header{"X-Ratelimit-Limit": limit, "X-Ratelimit-Remaining": left, "X-Ratelimit-Reset": reset}
	}
	one := func(limit, left, reset string) map[string]string {
		return map[string]string{"X-Ratelimit-Limit": limit, "X-Ratelimit-Remaining": left, "X-Ratelimit-Reset": reset}
	}
	ours := one("100", "50", "60")
	for name, test := range map[string]struct {
		h    http.Header
		s    admission.Standing
		want map[string]string
	}{
		"less there":         {three([]string{"10"}, []string{"9"}, []string{"3"}), allowed("a", 50), one("10", "9", "3")},
		"more there":         {three([]string{"90"}, []string{"51"}, []string{"3"}), allowed("a", 50), ours},
		"denied here":        {three([]string{"10"}, []string{"9"}, []string{"3"}), denied("a", 50), ours},
		"two lines":          {three([]string{"10", "20"}, []string{"9", "8"}, []string{"3", "4"}), allowed("a", 50), one("20", "8", "4")},
		"incomplete":         {three(nil, []string{"9"}, []string{"3"}), allowed("a", 50), ours},
		"incomplete too":     {three([]string{"10"}, []string{"9"}, nil), allowed("a", 50), ours},
		"malformed":          {three([]string{"10"}, []string{"-9"}, []string{"3"}), allowed("a", 50), ours},
		"malformed limit":    {three([]string{"10, 20"}, []string{"9"}, []string{"3"}), allowed("a", 50), ours},
		"malformed reset":    {three([]string{"10"}, []string{"9"}, []string{"soon"}), allowed("a", 50), ours},
		"one line malformed": {three([]string{"10", "20"}, []string{"x", "8"}, []string{"3", "4"}), allowed("a", 50), one("20", "8", "4")},
	} {
		t.Run(name, func(t *testing.T) {
			XRateLimit.Write(test.h, []admission.Standing{test.s}, now)
			expect(t, test.h, test.want)
		})
	}
}
