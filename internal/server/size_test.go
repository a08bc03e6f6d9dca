package server_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1GiB": 1 << 30, "512MiB": 512 << 20, "2GB": 2e9, "2gb": 2e9, "64 KiB": 64 << 10, "1048576": 1 << 20, "7B": 7, "3TiB": 3 << 40, "1kB": 1000,
	} {
		if got, err := server.ParseSize(text); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "1.5GiB", "-1GiB", "1XB", "1G", "99999999999999999999", "9999999999GiB", "1 GiB x"} {
		if got, err := server.ParseSize(text); err == nil || !strings.Contains(err.Error(), "accepted: ") {
			t.Errorf("%q: %d, %v; want an error that names what is accepted", text, got, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"1GiB", "2 gb", "", "9223372036854775807", "8388608TiB"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := server.ParseSize(text); n < 0 || err != nil && n != 0 {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	})
}
