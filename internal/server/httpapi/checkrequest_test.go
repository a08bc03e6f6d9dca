package httpapi

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/policy"
)

func readCheck(body []byte) (*checks.Request, *Problem) {
	var q request
	p := q.decodeCheck(body)
	return q.Request, p
}

func TestCheckIsRead(t *testing.T) {
	cost := int64(3)
	got, p := readCheck([]byte(` { "headers" : {"x-user":"bob" , "Accept": [ "a" ,"b\"]}" ] , "X-1":""},"method":"POST","host":"h:1",
		"path":"/a b/\u00e9","query":"a=1&b","client_ip":"::ffff:192.0.2.7","attributes":{"":"x","Tenant":"{}"},"cost":3,"hold_ms":1500 } `))
	want := &policy.Request{
		Method: "POST", Host: "h:1", Path: "/a b/é", RawQuery: "a=1&b", ClientIP: netip.MustParseAddr("::ffff:192.0.2.7"),
		Header:     http.Header{"X-User": {"bob"}, "Accept": {"a", `b"]}`}, "X-1": {""}},
		Attributes: map[string]string{"": "x", "Tenant": "{}"}, Cost: &cost, Hold: 1500 * time.Millisecond,
	}
	if p != nil || !reflect.DeepEqual(&got.Request, want) {
		t.Errorf("got %+v, %+v; want %+v", got, p, want)
	}
	for _, body := range []string{`{}`, `{"path":""}`, `{"path":"*"}`, `{"headers":{},"attributes":{}}`, `{"client_ip":"fe80::1%eth0"}`, `{"hold_ms":86400000}`} {
		got, p := readCheck([]byte(body))
		if p != nil || got.Cost != nil {
			t.Errorf("%s: %+v, %+v", body, got, p)
		}
	}
}

func TestChecksRefused(t *testing.T) {
	many := func(n int, value string) string { return strings.TrimSuffix(strings.Repeat(value+",", n), ",") }
	for _, test := range []struct{ body, field, value string }{
		{``, "body", "not JSON at byte 0"},
		{`[]`, "body", "not a JSON object"},
		{`{"key":"k"}`, "key", "unknown"},
		{`{"Path":"/"}`, "Path", "unknown"},
		{`{"path":"/","path":"/"}`, "path", "given twice"},
		{`{"cost":1,"cost":1}`, "cost", "given twice"},
		{`{"method":1}`, "method", "1"},
		{`{"method":["GET"]}`, "method", "an array"},
		{`{"host":null}`, "host", "null"},
		{`{"query":{}}`, "query", "an object"},
		{`{"path":"login"}`, "path", "login"},
		{`{"path":"/login?x=1"}`, "path", "/login?x=1"},
		{`{"path":"https://h/login"}`, "path", "https://h/login"},
		{`{"headers":[]}`, "headers", "an array"},
		{`{"headers":"X: y"}`, "headers", `"X: y"`},
		{`{"headers":{"X y":"z"}}`, "headers", `"X y"`},
		{`{"headers":{"":"z"}}`, "headers", `""`},
		{`{"headers":{"é":"z"}}`, "headers", `"é"`},
		{`{"headers":{"X-A":"1","x-a":"2"}}`, "headers", `"x-a" given twice`},
		{`{"headers":{"X":1}}`, "headers: X", "1"},
		{`{"headers":{"X":[]}}`, "headers: X", "an empty array"},
		{`{"headers":{"X":["a",1]}}`, "headers: X", "an array with others than strings"},
		{`{"headers":{"X":[["a"]]}}`, "headers: X", "an array with others than strings"},
		{`{"headers":{"X":[` + many(101, `"a"`) + `]}}`, "headers", "more than 100"},
		{`{"client_ip":""}`, "client_ip", ""},
		{`{"client_ip":"192.0.2.7:80"}`, "client_ip", "192.0.2.7:80"},
		{`{"client_ip":"192.0.2.007"}`, "client_ip", "192.0.2.007"},
		{`{"client_ip":"unknown"}`, "client_ip", "unknown"},
		{`{"attributes":["a"]}`, "attributes", "an array"},
		{`{"attributes":{"a":1}}`, "attributes: a", "1"},
		{`{"attributes":{"a":"1","a":"2"}}`, "attributes", `"a" given twice`},
		{`{"cost":-1}`, "cost", "-1"},
		{`{"cost":1.0}`, "cost", "1.0"},
		{`{"hold_ms":-1}`, "hold_ms", "-1"},
		{`{"hold_ms":86400001}`, "hold_ms", "86400001"},
		{`{"hold_ms":9223372036854775807}`, "hold_ms", "9223372036854775807"},
		{`{"hold_ms":"1s"}`, "hold_ms", `"1s"`},
	} {
		got, p := readCheck([]byte(test.body))
		switch {
		case p == nil:
			t.Errorf("%.80s is read as %+v", test.body, got)
		case p.Status != http.StatusBadRequest || p.Field != test.field || p.Value != test.value || p.Accepted == "":
			t.Errorf("%.80s: %+v, want field %q and value %q", test.body, p, test.field, test.value)
		}
	}
}

func TestSettlementsRefused(t *testing.T) {
	for _, test := range []struct {
		op                 checks.Settlement
		body, field, value string
	}{
		{checks.Settlements[0], `[]`, "body", "not a JSON object"},
		{checks.Settlements[0], `{}`, "token", "missing"},
		{checks.Settlements[0], `{"token":1}`, "token", "1"},
		{checks.Settlements[0], `{"token":"t","cost":1}`, "cost", "unknown"},
		{checks.Settlements[0], `{"token":"t","token":"t"}`, "token", "given twice"},
		{checks.Settlements[1], `{"token":"t"}`, "cost", "missing"},
		{checks.Settlements[1], `{"cost":1}`, "token", "missing"},
		{checks.Settlements[1], `{"token":"t","cost":-1}`, "cost", "-1"},
		{checks.Settlements[1], `{"token":"t","cost":1,"cost":1}`, "cost", "given twice"},
		{checks.Settlements[1], `{"token":"t","Cost":1}`, "Cost", "unknown"},
		{checks.Settlements[1], `{"token":"t","cost":1,"late":1}`, "late", "1"},
		{checks.Settlements[1], `{"token":"t","cost":1,"late":"true"}`, "late", `"true"`},
		{checks.Settlements[1], `{"token":"t","cost":1,"late":true,"late":true}`, "late", "given twice"},
		{checks.Settlements[0], `{"token":"t","late":true}`, "late", "unknown"},
	} {
		var q request
		q.Begin(operation.ByCommand("weir.check." + test.op.Name))
		if p := q.decodeSettlement([]byte(test.body)); p == nil || p.Field != test.field || p.Value != test.value || p.Accepted == "" {
			t.Errorf("%s %s: %+v, want field %q and value %q", test.op.Name, test.body, p, test.field, test.value)
		}
	}
}

// FuzzCheckRequest reads any body. What is read must be what encoding/json reads from it by another way, and what is refused must name a field.
func FuzzCheckRequest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"method":"POST","host":"h","path":"/login","query":"a=1","headers":{"X-User":"bob","Accept":["a","b"]},"client_ip":"192.0.2.7","attributes":{"t":"x"},"cost":3,"hold_ms":60000}`,
		`{"headers":{"X":["a]","{\"b"]}}`, `{"headers":{"X":[]}}`, `{"headers":{"x":"1","X":"2"}}`, `{"attributes":{"a":{"b":[]}}}`, `{"path":"/\ud83d\ude00"}`,
		`{"path":"?"}`, `{"hold_ms":86400001}`, `{"client_ip":"fe80::1%eth0"}`, `{"cost":0}`, `{"headers":{"X":["a",]}}`, `{"a":[[[[{"]":"}"}]]]]}`, `[`, "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, p := readCheck([]byte(body))
		if p != nil {
			if p.Field == "" || p.Accepted == "" || p.Status != http.StatusBadRequest {
				t.Errorf("refused with %+v, which does not say what is wrong", p)
			}
			return
		}
		var want struct {
			Method, Host, Path, Query string
			Headers                   map[string]any
			IP                        string `json:"client_ip"`
			Attributes                map[string]string
			Cost                      *int64
			Hold                      int64 `json:"hold_ms"`
		}
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatalf("read what encoding/json refuses: %v", err)
		}
		header := http.Header{}
		for name, value := range want.Headers {
			list, several := value.([]any)
			if !several {
				list = []any{value}
			}
			for _, v := range list {
				header.Add(name, v.(string))
			}
		}
		if got.Method != want.Method || got.Host != want.Host || got.Path != want.Path || got.RawQuery != want.Query || got.Hold.Milliseconds() != want.Hold ||
			len(got.Header) != len(header) || len(header) > 0 && !reflect.DeepEqual(got.Header, header) ||
			len(got.Attributes) != len(want.Attributes) || len(want.Attributes) > 0 && !reflect.DeepEqual(got.Attributes, want.Attributes) ||
			!reflect.DeepEqual(got.Cost, want.Cost) || got.ClientIP.IsValid() != (want.IP != "") {
			t.Errorf("read %+v, encoding/json %+v", got, want)
		}
	})
}
