package clients

import "fmt"

// A RowError is a client in the database that makes no sense: a service refuses all changes until it is mended.
type RowError struct {
	Client Client // without its limits
	Limits string // as they are in the database
	Err    error
}

func (b *RowError) Error() string { return b.Err.Error() }

func (b *RowError) Unwrap() error { return b.Err }

// MarshalJSON writes what MarshalJSON of a Client does, and why it makes no sense, under error.
func (b *RowError) MarshalJSON() ([]byte, error) {
	return b.Client.marshal(b.Limits, b.Error())
}

// checkText returns an error for a text that no row can have: one database would not find it, and another refuse the question.
func checkText(field, text string) error {
	if isText(text) {
		return nil
	}
	return fmt.Errorf("clients: %s is %s; accepted: UTF-8 without NUL", field, quoteShort(text))
}
