package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestConnectionsFitTheOpenFiles(t *testing.T) {
	for name, test := range map[string]struct {
		cfg        Config
		files      int
		resp, http connectionBounds
	}{
		"no limit of files":      {Config{}, 0, connectionBounds{10_000, 2500}, connectionBounds{10_000, 2500}},
		"many files":             {Config{}, 20_320, connectionBounds{10_000, 2500}, connectionBounds{10_000, 2500}},
		"ulimit -n 4096":         {Config{}, 4096, connectionBounds{2832, 708}, connectionBounds{944, 236}},
		"ulimit -n 1024":         {Config{}, 1024, connectionBounds{528, 132}, connectionBounds{176, 44}},
		"ulimit -n 256":          {Config{}, 256, connectionBounds{96, 24}, connectionBounds{32, 8}},
		"ulimit -n 1":            {Config{}, 1, connectionBounds{1, 1}, connectionBounds{1, 1}},
		"a bound that fits":      {Config{MaxConnections: 100}, 1024, connectionBounds{100, 25}, connectionBounds{100, 25}},
		"HTTP needs little":      {Config{MaxConnections: 500}, 1024, connectionBounds{500, 125}, connectionBounds{176, 44}},
		"a bound for an address": {Config{MaxConnectionsPerAddress: 3000}, 4096, connectionBounds{2832, 2832}, connectionBounds{944, 944}},
		"one per address":        {Config{MaxConnections: 2, MaxConnectionsPerAddress: 1}, 0, connectionBounds{2, 1}, connectionBounds{2, 1}},
		"fewer than four":        {Config{MaxConnections: 3}, 0, connectionBounds{3, 1}, connectionBounds{3, 1}},
		"without HTTP":           {Config{HTTP: Off}, 4096, connectionBounds{3776, 944}, connectionBounds{10_000, 2500}},
		"without RESP":           {Config{RESP: Off}, 4096, connectionBounds{10_000, 2500}, connectionBounds{3776, 944}},
		"without admin":          {Config{Admin: Off}, 4096, connectionBounds{2880, 720}, connectionBounds{960, 240}},
		"proxies":                {Config{ProxyProtocolFrom: []string{"10.0.0.0/8"}}, 6400, connectionBounds{3024, 756}, connectionBounds{1008, 252}},
	} {
		cfg, err := test.cfg.checked()
		if err != nil {
			t.Fatal(err)
		}
		if resp, http := cfg.connectionBounds(test.files); resp != test.resp || http != test.http {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", name, resp, http, test.resp, test.http)
		}
	}
}

func TestLowerBoundsAreLogged(t *testing.T) {
	for name, test := range map[string]struct {
		cfg   Config
		files int
		want  string
	}{
		"enough files":       {Config{}, 20_320, ""},
		"no limit":           {Config{MaxConnections: MostConnections}, 0, ""},
		"fewer than default": {Config{}, 4096, "level=INFO"},
		"fewer than asked":   {Config{MaxConnections: 9000}, 4096, "level=WARN"},
		"without HTTP":       {Config{HTTP: Off, MaxConnections: 3776}, 4096, ""},
	} {
		var log bytes.Buffer
		test.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		cfg, err := test.cfg.checked()
		if err != nil {
			t.Fatal(err)
		}
		cfg.logBounds(test.files)
		if got := log.String(); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: the log is %q, want %q in it", name, got, test.want)
		}
	}
}

// The connections of the admin listener and of the protocols are at most the open files, and half of
// few files are left.
func TestAdminConnectionsFitTheOpenFiles(t *testing.T) {
	for files, want := range map[int]connectionBounds{
		0: {64, 16}, 1 << 20: {64, 16}, 1024: {64, 16}, 256: {32, 8}, 64: {8, 4}, 32: {4, 4}, 24: {3, 3}, 1: {1, 1},
	} {
		got := adminBounds(files)
		if got != want {
			t.Errorf("%d files: %+v, want %+v", files, got, want)
		}
		cfg, err := Config{}.checked()
		if err != nil {
			t.Fatal(err)
		}
		resp, http := cfg.connectionBounds(files)
		if files >= 64 && resp.total+http.total+got.total > files*3/4 && files < 1<<20 {
			t.Errorf("%d files: %d, %d and %d connections", files, resp.total, http.total, got.total)
		}
	}
}
