package httpapi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

func newFailing() *failing {
	return &failing{memory.New(memory.Options{}), errors.New("dial tcp 10.1.2.3: secret")}
}

// What takes get while the store fails: an error, or a decision without it, which says so.
func TestTakesWhileTheStoreFails(t *testing.T) {
	s := newServer(func(o *httpapi.Options) { o.Limiters = limiters.New(newFailing()) })
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"take", `{"key":"k","limit":"4/1h"}`, 503, "no decision could be made"},
		{"take", `{"key":"k","limit":"4/1h","on_store_error":"deny"}`, 503, "no decision could be made"},
		{"take", `{"key":"k","limit":"4/1h","cost":9,"on_store_error":"allow"}`, 200, `{"allowed":true,"limit":4,"remaining":4,"retry_after_us":0,"reset_after_us":0,"delay_us":0,"failed":true,"local":false}`},
		{"take", `{"key":"k","limit":"4/1h","cost":4,"on_store_error":"local"}`, 200, `{"allowed":true,"limit":4,"remaining":0,"retry_after_us":0,"reset_after_us":3600000000,"delay_us":0,"failed":true,"local":true}`},
		{"take", `{"key":"k","limit":"4/1h","on_store_error":"local"}`, 200, `{"allowed":false,`},
		{"take-up-to", `{"key":"u","limit":"8/1h","cost":9,"on_store_error":"local 25%"}`, 200, `{"allowed":true,"granted":2,"limit":2,`},
		{"peek", `{"key":"p","limit":"4/1h","on_store_error":"local 50%"}`, 200, `"remaining":2,`},
		{"take", `{"key":"k","limit":"3/1h","on_store_error":"local 25%"}`, 400, `"field":"limit"`},
		{"take", `{"key":"k","limit":"3/1h","on_store_error":"maybe"}`, 400, `"field":"on_store_error","value":"maybe","accepted":"deny, allow, local`},
		{"take", `{"key":"k","limit":"3/1h","on_store_error":1}`, 400, `"field":"on_store_error"`},
		{"refund", `{"key":"k","limit":"3/1h","on_store_error":"allow"}`, 400, `"field":"on_store_error","value":"unknown"`},
		{"refund", `{"key":"k","limit":"3/1h"}`, 503, "no decision could be made"},
	} {
		status, body := post(t, s, "/v1/"+c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) || strings.Contains(body, "secret") {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
	if s := s.Stats(); s.FailedOpen != 1 || s.Local != 4 || s.Undecided != 8 || s.Allowed != 3 || s.Denied != 1 {
		t.Errorf("%+v", s)
	}
}

// The default of the server is for requests without a decision of their own.
func TestDefaultWhileTheStoreFails(t *testing.T) {
	s := newServer(func(o *httpapi.Options) {
		o.Limiters, o.OnStoreError = limiters.New(newFailing()), store.LocalShare(0.5)
	})
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"key":"k","limit":"2/1h"}`, 200, `{"allowed":true,"limit":1,`},
		{`{"key":"k","limit":"2/1h"}`, 200, `{"allowed":false,"limit":1,`},
		{`{"key":"k","limit":"2/1h","on_store_error":"deny"}`, 503, "no decision"},
		{`{"key":"k","limit":"1/1h"}`, 503, "no decision"}, // which has no half
	} {
		if status, body := post(t, s, "/v1/take", c.body); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", c.body, status, body)
		}
	}
}

// A check has a decision of its own in place of that of the policies.
func TestOnErrorOfChecks(t *testing.T) {
	s := newServer(ruled(t, newFailing()))
	for _, c := range []struct {
		body   string
		status int
		want   []string
	}{
		{`{"path":"/open","on_store_error":"deny"}`, 200, []string{`{"allowed":false,`, `"failed":true,"limits":[{`}},
		{`{"path":"/work","on_store_error":"allow"}`, 200, []string{`{"allowed":true,`, `"failed":true,"limits":[{`}},
		{`{"path":"/work","on_store_error":"local"}`, 200, []string{`{"allowed":true,`, `"failed":true,"local":true,"limits":[{`}},
		{`{"path":"/work","on_store_error":"local 0%"}`, 400, []string{`"field":"on_store_error"`}},
	} {
		status, body := post(t, s, "/v1/check", c.body)
		for _, want := range c.want {
			if status != c.status || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s; want %s", c.body, status, body, want)
			}
		}
	}
}
