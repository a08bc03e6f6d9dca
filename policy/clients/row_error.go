package clients

import (
	"fmt"

	"github.com/weirlimit/weir/policy"
)

// A RowError is a bad row of the database: it is invalid, or refused by a Follower's policies. The
// client keeps the Follower's last good row, or has the default limits.
type RowError struct {
	Client Client // without its limits
	Limits string // as they are in the database
	Err    error  // the reason; it does not name the client
}

// Error returns the reason after the client's name, which is masked: see [policy.MaskClient].
func (b *RowError) Error() string {
	return "client " + policy.MaskClient(b.Client.Name) + ": " + b.Err.Error()
}

// Unwrap returns the reason.
func (b *RowError) Unwrap() error { return b.Err }

// MarshalJSON writes the JSON form of the Client, with the reason under error.
func (b *RowError) MarshalJSON() ([]byte, error) {
	return b.Client.marshal(b.Limits, b.Err.Error())
}

// checkText returns an error for a text that no row can have: one database would not find it, and another refuse the question.
func checkText(field, text string) error {
	if isText(text) {
		return nil
	}
	return fmt.Errorf("clients: %s is %s; accepted: UTF-8 without NUL", field, quoteShort(text))
}
