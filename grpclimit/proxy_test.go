package grpclimit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/weirlimit/weir/grpclimit"
)

// An untrusted proxy is logged, once, also if calls are counted by the peer's address
// alone.
func TestProxyThatIsNotTrustedIsLogged(t *testing.T) {
	for _, field := range []string{"x-forwarded-for", "forwarded", "x-real-ip"} {
		var log bytes.Buffer
		client := serve(t, &service{}, server(t, limiter(t, "9/1h"), grpclimit.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
		for range 3 {
			if _, err := client.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), field, "192.0.2.66"), &pb.Empty{}); err != nil {
				t.Fatal(err)
			}
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "peer=127.0.0.1") || strings.Contains(text, "192.0.2.66") {
			t.Errorf("%s: logged: %s", field, text)
		}
	}
}
