package panics_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/panics"
)

// A task of the background goes on after a panic, which is logged with its stack.
func TestBackground(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	if err := panics.Background("sweep", func() error { panic("boom") }); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("error %v, want the panic", err)
	}
	if s := log.String(); !strings.Contains(s, "level=ERROR msg=panic task=sweep panic=boom") || !strings.Contains(s, "panics_test.go") {
		t.Errorf("logged: %s", s)
	}
	log.Reset()
	other := errors.New("other")
	if err := panics.Background("sweep", func() error { return other }); !errors.Is(err, other) || log.Len() > 0 {
		t.Errorf("error %v, logged: %s; want the error alone", err, &log)
	}
}
