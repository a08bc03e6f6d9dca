package engines

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// A watcher reads what Redis says of itself. It does nothing for another engine.
type watcher struct{ c rueidis.Client }

func watch(c contender, address string) (watcher, error) {
	if c.engine != redisEngine {
		return watcher{}, nil
	}
	client, err := dialBare("redis://" + address)
	return watcher{client}, err
}

func (w watcher) close() {
	if w.c != nil {
		w.c.Close()
	}
}

// A view is what Redis has done since it was started.
type view struct {
	// seconds is the processor time that it used, in user and kernel mode.
	seconds float64
	calls   map[string]int64
}

func (w watcher) look(ctx context.Context) (view, error) {
	if w.c == nil {
		return view{}, nil
	}
	text, err := w.c.Do(ctx, w.c.B().Info().Section("cpu", "commandstats").Build()).ToString()
	if err != nil {
		return view{}, err
	}
	return readInfo(text)
}

// readInfo reads lines like "used_cpu_user:1.5" and "cmdstat_get:calls=3,usec=7,…".
func readInfo(text string) (view, error) {
	v := view{calls: map[string]int64{}}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		var err error
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			v.calls[command], err = strconv.ParseInt(calls, 10, 64)
		} else if name == "used_cpu_user" || name == "used_cpu_sys" {
			var s float64
			s, err = strconv.ParseFloat(value, 64)
			v.seconds += s
		}
		if err != nil {
			return view{}, fmt.Errorf("INFO has %q; accepted: a number: %w", lines.Text(), err)
		}
	}
	if v.seconds == 0 {
		return view{}, fmt.Errorf("INFO is %q; accepted: one with used_cpu_user", text)
	}
	return v, nil
}

// less returns how often each command was carried out since the earlier view, without those never.
func (v view) less(earlier view) map[string]int64 {
	d := map[string]int64{}
	for command, n := range v.calls {
		if n -= earlier.calls[command]; n > 0 && command != "info" {
			d[command] = n
		}
	}
	return d
}

// sent is how many commands the contender's client sent.
func (c contender) sent(calls map[string]int64) float64 {
	var n float64
	for command, each := range c.sends {
		n += each * float64(calls[command])
	}
	return n
}

// carriedOut is how many commands Redis carried out, those inside scripts too.
func carriedOut(calls map[string]int64) float64 {
	var n int64
	for _, each := range calls {
		n += each
	}
	return float64(n)
}
