package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/internal/server/operation"
)

type step struct{ path, body, want string }

func runSteps(t *testing.T, s *httpapi.Server, steps []step) {
	t.Helper()
	for _, step := range steps {
		status, got := post(t, s, step.path, step.body)
		if status != http.StatusOK || got != step.want+"\n" {
			t.Errorf("%s %s\n got %d %s\nwant 200 %s", step.path, step.body, status, got, step.want)
		}
	}
}

func TestDecisions(t *testing.T) {
	const k = `"key":"user:42","limit":"2/1s"`
	runSteps(t, newServer(trusting), []step{
		{"/v1/peek", at(k, 0), `{"allowed":true,"limit":2,"remaining":2,"retry_after_us":0,"reset_after_us":0,"delay_us":0}`},
		{"/v1/take", at(k, 0), `{"allowed":true,"limit":2,"remaining":1,"retry_after_us":0,"reset_after_us":500000,"delay_us":0}`},
		{"/v1/take", at(k+`,"cost":1`, 0), `{"allowed":true,"limit":2,"remaining":0,"retry_after_us":0,"reset_after_us":1000000,"delay_us":0}`},
		{"/v1/take", at(k+`,"cost":2`, 0.25), `{"allowed":false,"limit":2,"remaining":0,"retry_after_us":750000,"reset_after_us":750000,"delay_us":0}`},
		{"/v1/take", at(k+`,"cost":3`, 0.25), `{"allowed":false,"limit":2,"remaining":0,"retry_after_us":-1,"reset_after_us":750000,"delay_us":0}`},
		{"/v1/take", at(k+`,"cost":0`, 0.25), `{"allowed":true,"limit":2,"remaining":0,"retry_after_us":0,"reset_after_us":750000,"delay_us":0}`},
		{"/v1/refund", at(k+`,"cost":1`, 0.25), `{"allowed":true,"limit":2,"remaining":1,"retry_after_us":0,"reset_after_us":250000,"delay_us":0}`},
		{"/v1/reset", at(k, 0.25), `{"allowed":true,"limit":2,"remaining":2,"retry_after_us":0,"reset_after_us":0,"delay_us":0}`},
	})
}

// The empty key is a key: all its requests share its budget.
func TestEmptyKeyIsOneKey(t *testing.T) {
	const k = `"key":"","limit":"1/1s"`
	runSteps(t, newServer(trusting), []step{
		{"/v1/take", at(k, 0), `{"allowed":true,"limit":1,"remaining":0,"retry_after_us":0,"reset_after_us":1000000,"delay_us":0}`},
		{"/v1/take", at(k, 0), `{"allowed":false,"limit":1,"remaining":0,"retry_after_us":1000000,"reset_after_us":1000000,"delay_us":0}`},
		{"/v1/take", at(`"key":"-","limit":"1/1s"`, 0), `{"allowed":true,"limit":1,"remaining":0,"retry_after_us":0,"reset_after_us":1000000,"delay_us":0}`},
	})
}

// A third of a second is no whole number of microseconds: a wait that was rounded down would be too short.
func TestWaitsAreRoundedUp(t *testing.T) {
	const k = `"key":"k","limit":"gcra 3/1s burst=1"`
	runSteps(t, newServer(trusting), []step{
		{"/v1/take", at(k, 0), `{"allowed":true,"limit":1,"remaining":0,"retry_after_us":0,"reset_after_us":333334,"delay_us":0}`},
		{"/v1/take", at(k, 0), `{"allowed":false,"limit":1,"remaining":0,"retry_after_us":333334,"reset_after_us":333334,"delay_us":0}`},
		{"/v1/take", at(k, 0.333334), `{"allowed":true,"limit":1,"remaining":0,"retry_after_us":0,"reset_after_us":333334,"delay_us":0}`},
	})
}

func TestLeakyQueueSaysTheDelay(t *testing.T) {
	const k = `"key":"k","limit":"leaky-queue 4/1s queue=10"`
	runSteps(t, newServer(trusting), []step{
		{"/v1/take", at(k, 0), `{"allowed":true,"limit":11,"remaining":10,"retry_after_us":0,"reset_after_us":250000,"delay_us":0}`},
		{"/v1/take", at(k, 0), `{"allowed":true,"limit":11,"remaining":9,"retry_after_us":0,"reset_after_us":500000,"delay_us":250000}`},
	})
}

func TestServersClockWithoutATime(t *testing.T) {
	s := newServer()
	want := `{"allowed":true,"limit":1,"remaining":0,"retry_after_us":0,"reset_after_us":3600000000,"delay_us":0}` + "\n"
	if status, got := post(t, s, "/v1/take", `{"key":"k","limit":"1/1h"}`); status != 200 || got != want {
		t.Errorf("first take: %d %s, want %s", status, got, want)
	}
	if _, got := post(t, s, "/v1/take", `{"key":"k","limit":"1/1h"}`); got[:16] != `{"allowed":false` {
		t.Errorf("second take: %s, want a denial", got)
	}
}

func TestStatsCountTakesByVerdict(t *testing.T) {
	s := newServer()
	for range 3 {
		post(t, s, "/v1/take", `{"key":"k","limit":"1/1h"}`)
	}
	post(t, s, "/v1/peek", `{"key":"k","limit":"1/1h"}`)
	post(t, s, "/v1/take", `{}`)
	want := operation.Stats{Counts: operation.Counts{Requests: 5, Allowed: 1, Denied: 2, Errors: 1}}
	if got := s.Stats(); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}

func TestShutdownBeforeServe(t *testing.T) {
	if err := newServer().Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
