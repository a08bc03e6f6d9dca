package policy

import (
	"encoding/json"
	"time"

	"github.com/weirlimit/weir"
)

// MarshalJSON writes the explanation with its times in microseconds, rounded up; −1 is never.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	type fields Explanation // without methods
	return json.Marshal(struct {
		*fields
		RetryAfter int64 `json:"retry_after_us"`
	}{(*fields)(e), micros(e.RetryAfter)})
}

// MarshalJSON writes the limit with its times in microseconds, rounded up; −1 is never.
func (l *ExplainedLimit) MarshalJSON() ([]byte, error) {
	text := l.Limit.String()
	if l.Limit == (weir.Limit{}) {
		if text = planDeny; l.Allowed {
			text = planUnlimited
		}
	}
	return json.Marshal(struct {
		Limit      string `json:"limit"`
		Role       string `json:"role"`
		Plan       string `json:"plan,omitempty"`
		Key        string `json:"key"`
		Cost       int64  `json:"cost"`
		Allowed    bool   `json:"allowed"`
		Capacity   int64  `json:"capacity"`
		Remaining  int64  `json:"remaining"`
		RetryAfter int64  `json:"retry_after_us"`
		ResetAfter int64  `json:"reset_after_us"`
		Delay      int64  `json:"delay_us"`
		Failed     bool   `json:"failed,omitempty"`
	}{
		text, l.Role.String(), l.Plan, l.MaskedKey(), l.Cost, l.Allowed, l.Decision.Limit, l.Remaining,
		micros(l.RetryAfter), micros(l.ResetAfter), micros(l.Delay), l.Failed,
	})
}

func micros(d time.Duration) int64 {
	if d == weir.Never {
		return -1
	}
	us := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	return us
}
