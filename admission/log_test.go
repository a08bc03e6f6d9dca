package admission_test

import (
	"log/slog"
	"strings"
	"sync"
)

var silent = slog.New(slog.DiscardHandler)

// A logged is what was logged, for who reads it while others write.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) Len() int { return len(l.String()) }

func (l *logged) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func logTo(l *logged) *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
