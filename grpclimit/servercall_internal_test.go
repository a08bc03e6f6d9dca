package grpclimit

import (
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
)

// What is the protocol's is not the caller's to say, but for the authority, which is the host.
func TestFieldsOfTheProtocolAreNone(t *testing.T) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{
		":authority": {"shop.example"}, ":path": {"/a"}, ":other": {"x"}, "grpc-timeout": {"1S"}, "x-api-key": {"abc", "def"},
	})
	host, h := fields(ctx)
	if host != "shop.example" || len(h) != 1 || len(h["X-Api-Key"]) != 2 {
		t.Errorf("the host is %q, and the fields are %v; want shop.example, and x-api-key alone", host, h)
	}
}

// Clients take a RetryInfo of 0 for one that says nothing.
func TestARetryInfoIsNever0(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{-1: 1, 0: 1, 1: 1, time.Second: time.Second} {
		if got := retryInfo(wait).GetRetryDelay().AsDuration(); got != want {
			t.Errorf("the retry_delay of %v is %v, want %v", wait, got, want)
		}
	}
}
