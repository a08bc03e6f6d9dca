package httplimit_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/policy"
)

const both = header.Draft11 | header.XRateLimit

// layer is middleware of a limiter that has so much left, of 1000.
func layer(t *testing.T, name string, left int64, opts httplimit.Options) func(http.Handler) http.Handler {
	t.Helper()
	l := newLimiter(t, "fixed-window 1000/1h", weir.WithName(name))
	take(t, l, "127.0.0.1", 1000-left)
	opts.Name, opts.Headers = name, both
	mw, err := httplimit.New(l, opts)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// orders are all orders of three things.
var orders = [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// Pitfall H5: several middlewares around one handler give one coherent set of fields, in any order, also those that wait for the answer.
func TestH5StackedMiddlewares(t *testing.T) {
	for _, order := range orders {
		for charged := range 2 {
			t.Run(fmt.Sprint(order, charged), func(t *testing.T) {
				var opts [3]httplimit.Options
				if charged == 1 {
					opts[order[1]].Charge = admission.Successes
				}
				mws := []func(http.Handler) http.Handler{layer(t, "a", 500, opts[0]), layer(t, "b", 2, opts[1]), layer(t, "c", 80, opts[2])}
				var h http.Handler = okHandler
				for _, i := range order {
					h = mws[i](h)
				}
				url := serve(t, h)
				for i, left := range []map[string]string{{"a": "499", "b": "1", "c": "79"}, {"a": "498", "b": "0", "c": "78"}} {
					got := get(t, url)
					if r := remaining(t, got.header); got.status != 200 || !maps.Equal(r, left) {
						t.Errorf("request %d: %d, and there remain %v, want %v", i+1, got.status, r, left)
					}
					if p := list(t, got.header, "RateLimit-Policy"); len(p) != 3 {
						t.Errorf("RateLimit-Policy is %v", p)
					}
					wantX(t, got.header, "1000", left["b"])
					if got.header["Retry-After"] != nil {
						t.Errorf("Retry-After is %q", got.header["Retry-After"])
					}
				}
				got := get(t, url)
				if d := got.problem(t); got.status != 429 || len(d.Violated) != 1 || d.Violated[0] != "b" {
					t.Errorf("%d, violated %q, want 429 by b", got.status, d.Violated)
				}
				told := remaining(t, got.header)
				if told["b"] != "0" || len(list(t, got.header, "RateLimit-Policy")) != len(told) {
					t.Errorf("of a denial: %v", got.header)
				}
				wantX(t, got.header, "1000", "0")
				if retry := got.header.Values("Retry-After"); len(retry) != 1 || retry[0] != "3600" {
					t.Errorf("Retry-After is %q", retry)
				}
			})
		}
	}
}

func wantX(t *testing.T, h http.Header, limit, left string) {
	t.Helper()
	for name, want := range map[string]string{"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": left, "X-RateLimit-Reset": "3600"} {
		if got := h.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %s", name, got, want)
		}
	}
}

// Pitfall H5: a limiter beside policies, and one name twice: what leaves less is told.
func TestH5LimiterAroundPolicies(t *testing.T) {
	set := newSet(t, `policies: [{name: a, key: all, limits: [10/1h]}, {name: b, key: all, limits: [20/1h]}]`, policy.Options{})
	inner := limit(t, set, httplimit.Options{}, okHandler)
	url := serve(t, limit(t, newLimiter(t, "5/1h"), httplimit.Options{Name: "a"}, inner))
	for i := range 5 {
		got := get(t, url)
		if r := remaining(t, got.header); !maps.Equal(r, map[string]string{"a": fmt.Sprint(4 - i), "b": fmt.Sprint(19 - i)}) {
			t.Errorf("there remain %v", r)
		}
		if p := list(t, got.header, "RateLimit-Policy"); len(p) != 2 || param(p["a"], "q") != "5" || param(p["b"], "q") != "20" {
			t.Errorf("RateLimit-Policy is %v", p)
		}
	}
}

// Pitfall H5: what a handler adds itself is on its own answer alone, and a list with what was there.
func TestH5HandlerAdds(t *testing.T) {
	url := serve(t, limit(t, newLimiter(t, "5/1h"), httplimit.Options{Name: "a"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Ratelimit", `"own";r=1`)
		w.Header().Add("Ratelimit-Policy", `"own";q=1`)
	})))
	for range 3 {
		got := get(t, url)
		lists := header.Read(got.header, noon())
		if n := len(got.header["Ratelimit"]); n != 2 || len(lists.Limits) != 2 || lists.Limits[0].Name != "a" || lists.Limits[1].Name != "own" {
			t.Errorf("%v is read as %+v", got.header, lists)
		}
	}
}

// Pitfall H5: what other middleware has set before is kept, in one line, and what makes no sense is not.
func TestH5OtherMiddleware(t *testing.T) {
	for _, c := range []struct {
		policies, limits []string
		want             map[string]string
	}{
		{[]string{`"x";q=7`}, []string{`"x";r=3;t=1`}, map[string]string{"x": "3", "a": "1"}},
		{[]string{`"x";q=7`, `"y";q=9;w=1`}, []string{`"x";r=3`, `"y";r=4`}, map[string]string{"x": "3", "y": "4", "a": "1"}},
		{[]string{`"a";q=7`}, []string{`"a";r=0;t=9`}, map[string]string{"a": "0"}},
		{[]string{`limit=`}, []string{`limit=10, remaining=9, reset=1, ;`}, map[string]string{"a": "1"}},
	} {
		h := limit(t, newLimiter(t, "2/1h"), httplimit.Options{Name: "a"}, okHandler)
		got := get(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Ratelimit-Policy"], w.Header()["Ratelimit"] = c.policies, c.limits
			h.ServeHTTP(w, r)
		})))
		if r := remaining(t, got.header); !maps.Equal(r, c.want) {
			t.Errorf("after %q there remain %v, want %v", c.limits, r, c.want)
		}
		if p := list(t, got.header, "RateLimit-Policy"); len(p) != len(c.want) {
			t.Errorf("after %q RateLimit-Policy is %v", c.policies, p)
		}
	}
}

// Pitfall H5: in front of a server that tells of its own limits, a proxy's and the server's are told together.
func TestH5ReverseProxy(t *testing.T) {
	upstream := serve(t, limit(t, newLimiter(t, "50/1h"), httplimit.Options{Name: "upstream", Headers: both}, okHandler))
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	got := get(t, serve(t, limit(t, newLimiter(t, "9/1h"), httplimit.Options{Name: "edge"}, proxy)))
	if r := header.Read(got.header, noon()); len(r.Limits) != 2 {
		t.Errorf("%v is read as %+v", got.header, r)
	}
}

// Retry-After is not earlier than a limit is that another middleware has told of, and of which nothing is left.
func TestRetryAfterOfAStack(t *testing.T) {
	for _, c := range []struct {
		outer, inner string
		headers      header.Formats // of the inner one
		calls        int
		want         string
	}{
		{"fixed-window 2/4h", "fixed-window 1/1h", header.Draft11, 1, "3600"},
		{"fixed-window 2/4h", "fixed-window 1/1h", header.Draft11, 2, "14400"},
		{"fixed-window 2/4h", "fixed-window 1/1h", header.XRateLimit, 2, "14400"},
		{"fixed-window 2/1h", "fixed-window 1/4h", header.Draft11, 2, "14400"},
		{"fixed-window 2/1h", "fixed-window 1/4h", header.Draft11, 3, "3600"}, // by the outer one, which knows of no other
	} {
		outer, inner := newLimiter(t, c.outer), newLimiter(t, c.inner)
		h := limit(t, outer, httplimit.Options{Name: "outer"}, limit(t, inner, httplimit.Options{Name: "inner", Headers: c.headers}, okHandler))
		take(t, inner, "192.0.2.1", 1)
		var got reply
		for range c.calls {
			got = one(h, http.MethodGet, nil)
		}
		if retry := got.header.Values("Retry-After"); got.status != 429 || len(retry) != 1 || retry[0] != c.want {
			t.Errorf("%+v: %d, Retry-After is %q; %q", c, got.status, retry, got.header["Ratelimit"])
		}
	}
}
