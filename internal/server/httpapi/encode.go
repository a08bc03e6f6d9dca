package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/policy"
)

// jsonType is shared by all answers, and never changed.
var jsonType = []string{"application/json"}

// appendAnswer appends the result of an operation on one limit.
func appendAnswer(b []byte, c *operation.Call) []byte {
	d := c.Decision()
	b = append(b, `{"allowed":`...)
	b = strconv.AppendBool(b, d.Allowed)
	if c.Granted {
		b = append(b, `,"granted":`...)
		b = strconv.AppendInt(b, c.GrantedUnits(), 10)
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

func microseconds(d time.Duration) int64 { return operation.WholeUnits(d, time.Microsecond) }

// A settled is the result of a settlement.
type settled struct {
	Settled bool   `json:"settled"` // false if there is more to come, with the new token
	Token   string `json:"token,omitempty"`
}

// A checkAnswer is a policy.Decision as it is written.
type checkAnswer struct {
	Allowed bool  `json:"allowed"`
	Limit   int64 `json:"limit"`
	standing
	Denied []string      `json:"denied"`
	Token  string        `json:"token,omitempty"`
	Failed bool          `json:"failed"`
	Local  bool          `json:"local,omitempty"`
	Limits []limitAnswer `json:"limits"`
}

// A limitAnswer is what stands for one limit.
type limitAnswer struct {
	Policy   string `json:"policy"`
	Plan     string `json:"plan,omitempty"`
	Limit    string `json:"limit"` // its text
	Role     string `json:"role"`
	Key      string `json:"key"`
	Cost     int64  `json:"cost"`
	Failed   bool   `json:"failed,omitempty"`
	Local    bool   `json:"local,omitempty"`
	Allowed  bool   `json:"allowed"`
	Capacity int64  `json:"capacity"`
	standing
}

// standing is what a decision says besides.
type standing struct {
	Remaining  int64 `json:"remaining"`
	RetryAfter int64 `json:"retry_after_us"`
	ResetAfter int64 `json:"reset_after_us"`
	Delay      int64 `json:"delay_us"`
}

func checkAnswerOf(d *policy.Decision) checkAnswer {
	a := checkAnswer{
		Allowed: d.Allowed, Limit: d.Limit, standing: standingOf(d.Decision),
		Denied: d.Denied, Token: d.Token, Failed: d.Failed, Local: d.Local, Limits: make([]limitAnswer, len(d.Each)),
	}
	if a.Denied == nil {
		a.Denied = []string{}
	}
	for i, l := range d.Each {
		a.Limits[i] = limitAnswer{
			Policy: l.Policy, Plan: l.Plan, Limit: checks.LimitText(l), Role: l.Role.String(), Key: l.MaskedKey(), Cost: l.Cost, Failed: l.Failed, Local: l.Local,
			Allowed: l.Allowed, Capacity: l.Decision.Limit, standing: standingOf(l.Decision),
		}
	}
	return a
}

func standingOf(d weir.Decision) standing {
	return standing{d.Remaining, microseconds(d.RetryAfter), microseconds(d.ResetAfter), microseconds(d.Delay)}
}

// writeJSON writes an answer of some size.
func writeJSON(w http.ResponseWriter, b *bytes.Buffer, answer any) *Problem {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(answer); err != nil { // of texts and numbers: can't be
		return &Problem{Status: http.StatusInternalServerError, Detail: "the answer could not be written"}
	}
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(b.Bytes())
	return nil
}
