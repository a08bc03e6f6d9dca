package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirlimit/weir"
)

// readDuration reads the duration of a flag.
func readDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := parseDuration(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

// parseDuration reads a Go duration, or the period of a limit, such as 31d, 2hours or week. A day
// has 24 hours.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if !strings.ContainsAny(text, "/ ") {
		l, err := weir.ParseLimit("1/" + text)
		if err == nil && (l.Algorithm != weir.Calendar || l.Unit == "day" || l.Unit == "week") {
			return l.Period, nil
		}
	}
	return 0, fmt.Errorf("expected duration but got %q; accepted: a duration such as 500ms, 90s, 12h, 31d or week", text)
}
