package postgres

import "testing"

// The pool has sixteen connections or more, unless the URL says how many.
func TestConnections(t *testing.T) {
	for url, right := range map[string]func(int32) bool{
		"postgres://h/db":                                     func(n int32) bool { return n >= 16 },
		"postgres://h/db?weir_timeout=2s":                     func(n int32) bool { return n >= 16 },
		"postgres://h/db?pool_max_conns=3":                    func(n int32) bool { return n == 3 },
		"postgres://h/db?sslmode=disable&pool%5Fmax_conns=40": func(n int32) bool { return n == 40 },
	} {
		config, _, err := parse(url, Options{})
		if err != nil || !right(config.MaxConns) {
			t.Errorf("%s: %v, %v", url, config, err)
		}
	}
}
