package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store/memory"
)

// FuzzTake sends any body to /v1/take. What is decoded must be what encoding/json reads from the same body by another
// way, and what is refused must name a field.
func FuzzTake(f *testing.F) {
	for _, seed := range []string{
		`{"key":"user:42","limit":"100/1m"}`, `{"key":"k","limit":"gcra 10/1s burst=20","cost":3,"at_us":1735689600000000}`,
		`{"key":"\ud83d\ude00\u0000","limit":"sliding-log 3/1m","cost":0}`, `{"key":"\ud800","limit":"1/1s"}`,
		`{"key":"k","limit":"1/1s","key":"l"}`, `{"Key":"k"}`, `{"key":"k","limit":"1/1s","name":"login"}`, `{} {}`, `[`, `{"key":{"key":[]}}`, `{"cost":1e400}`, `nul`, "\xff",
		`{"key":"k","limit":"1/1s",}`, `{"key" "k"}`, `{"key":"k" "limit":"1/1s"}`, `{"key":"k","limit":"9223372036854775807/1ns"}`,
	} {
		f.Add(seed)
	}
	s := New(Options{Service: &operation.Service{Limiters: limiters.New(memory.New(memory.Options{MaxKeys: 1000})), TrustClientTime: true}, Hosts: []string{"example.com"}})
	f.Fuzz(func(t *testing.T, body string) {
		var q request
		q.Begin(operation.ByCommand("weir.take"))
		p := s.decode(&q, []byte(body))
		if p == nil {
			sameAsUnmarshal(t, body, &q)
		} else if p.Field == "" || p.Accepted == "" || p.Status != http.StatusBadRequest {
			t.Errorf("refused with %+v, which does not say what is wrong", p)
		}
		r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if status := w.Code; status != 200 && status != 400 && status != 413 {
			t.Errorf("status is %d", status)
		}
		if !json.Valid(w.Body.Bytes()) || !utf8.Valid(w.Body.Bytes()) {
			t.Errorf("answer is not JSON: %q", w.Body)
		}
	})
}

func sameAsUnmarshal(t *testing.T, body string, got *request) {
	t.Helper()
	want := struct {
		Key   string
		Limit string
		Name  string
		Cost  int64
		At    int64 `json:"at_us"`
	}{Cost: 1}
	if err := json.Unmarshal([]byte(body), &want); err != nil {
		t.Fatalf("decoded what encoding/json refuses: %v", err)
	}
	if got.Key != want.Key || got.Text != want.Limit || got.Name != want.Name || got.Op.Cost != want.Cost || got.Given&operation.At != 0 && got.at.UnixMicro() != want.At {
		t.Errorf("decoded %+v, encoding/json %+v", got, want)
	}
}
