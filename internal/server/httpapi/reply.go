package httpapi

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
)

// jsonType is shared by all answers, and never changed.
var jsonType = []string{"application/json"}

func writeAnswer(w http.ResponseWriter, b *bytes.Buffer, a answer) {
	b.Write(appendAnswer(b.AvailableBuffer(), a))
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(b.Bytes())
}

func appendAnswer(b []byte, a answer) []byte {
	d := a.Decision
	b = append(b, `{"allowed":`...)
	b = strconv.AppendBool(b, d.Allowed)
	if a.granting {
		b = append(b, `,"granted":`...)
		b = strconv.AppendInt(b, a.granted, 10)
	}
	b = append(b, `,"limit":`...)
	b = strconv.AppendInt(b, d.Limit, 10)
	b = append(b, `,"remaining":`...)
	b = strconv.AppendInt(b, d.Remaining, 10)
	b = append(b, `,"retry_after_us":`...)
	b = strconv.AppendInt(b, microseconds(d.RetryAfter), 10)
	b = append(b, `,"reset_after_us":`...)
	b = strconv.AppendInt(b, microseconds(d.ResetAfter), 10)
	b = append(b, `,"delay_us":`...)
	b = strconv.AppendInt(b, microseconds(d.Delay), 10)
	if d.Failed {
		b = append(b, `,"failed":true,"local":`...)
		b = strconv.AppendBool(b, d.Local)
	}
	return append(b, "}\n"...)
}

// microseconds rounds up, because a client that comes back a moment too early is denied again. Never is -1.
func microseconds(d time.Duration) int64 {
	if d == weir.Never {
		return -1
	}
	n := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}
