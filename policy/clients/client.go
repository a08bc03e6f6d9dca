package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// Bounds on what a client's row holds, in bytes.
const (
	maxClient = 1024
	maxNote   = 4096
)

// A Client is a row of the database: who, and what it has instead of the default limits.
type Client struct {
	// Name is the client's source and value in policies, as policy.ClientName writes them, such as
	// client_ip=192.0.2.7 or header:X-Api-Key=k1; or the value alone. 1 to 1024 bytes.
	Name string
	// Exactly one of both is set.
	Plan   string
	Limits map[string][]weir.Limit // by policy; under "" for every policy that has plans
	Note   string                  // for people, at most 4096 bytes
	// From when, and until when, exclusive, the client has this. The zero Time is no bound. Outside it has the default limits.
	From, Until time.Time
	Updated     time.Time // when the row was written; set by the database
}

// Validate reports the first field that makes no sense.
func (c Client) Validate() error {
	switch {
	case c.Name == "" || len(c.Name) > maxClient || !isText(c.Name):
		return fmt.Errorf("clients: client is %s; accepted: 1 to %d bytes of UTF-8 without NUL", quoteShort(c.Name), maxClient)
	case c.Plan == "" && len(c.Limits) == 0:
		return fmt.Errorf("clients: client %s has neither plan nor limits; accepted: one of both", quoteShort(c.Name))
	case c.Plan != "" && len(c.Limits) != 0:
		return fmt.Errorf("clients: client %s has a plan and limits; accepted: one of both", quoteShort(c.Name))
	case len(c.Plan) > maxName || !isText(c.Plan):
		return fmt.Errorf("clients: plan of client %s is %s; accepted: at most %d bytes of UTF-8 without NUL", quoteShort(c.Name), quoteShort(c.Plan), maxName)
	case len(c.Note) > maxNote || !isText(c.Note):
		return fmt.Errorf("clients: note of client %s is %s; accepted: at most %d bytes of UTF-8 without NUL", quoteShort(c.Name), quoteShort(c.Note), maxNote)
	}
	return errors.Join(checkName(c.Name, quoteShort), c.validateTimes(), c.validateLimits())
}

// checkName refuses a name whose source is not in canonical form: no request would match. The error
// has names as show returns them.
func checkName(name string, show func(string) string) error {
	canonical, err := policy.ClientName(name)
	switch {
	// the error shows the value, which may be a secret under a wrong source
	case err != nil && policy.NamesSource(name):
		_, accepted, _ := strings.Cut(err.Error(), "; accepted: ")
		return fmt.Errorf("clients: client is %s; accepted: %s", show(name), accepted)
	case err != nil:
		return fmt.Errorf("clients: %s", strings.TrimPrefix(err.Error(), "weir: "))
	case canonical != name && strings.HasPrefix(canonical, "hash:"): // the name may hold a secret
		source, _, _ := strings.Cut(canonical, "=")
		return fmt.Errorf("clients: client has the source %s and a value that is not hashed; accepted: # and its SHA-256, as weir clients set writes it", source)
	case canonical != name:
		return fmt.Errorf("clients: client is %s; accepted: its canonical form %s", show(name), show(canonical))
	}
	return nil
}

func (c Client) validateTimes() error {
	for field, t := range map[string]time.Time{"from": c.From, "until": c.Until} {
		if year := t.UTC().Year(); !t.IsZero() && (year < 1 || year > 9999) {
			return fmt.Errorf("clients: %s of client %s is in the year %d; accepted: 1 to 9999", field, quoteShort(c.Name), year)
		}
	}
	if !c.From.IsZero() && !c.Until.IsZero() && !c.From.Before(c.Until) {
		return fmt.Errorf("clients: client %s is valid until %s; accepted: a time after %s, from which it is valid",
			quoteShort(c.Name), c.Until.UTC().Format(time.RFC3339), c.From.UTC().Format(time.RFC3339))
	}
	return nil
}

// validateLimits finds out whether the limits are the same when they are read again.
func (c Client) validateLimits() error {
	if c.Plan != "" {
		return nil
	}
	for name, limits := range c.Limits {
		if len(limits) == 0 {
			return fmt.Errorf("clients: limits of client %s for policy %q are none; accepted: one or more", quoteShort(c.Name), name)
		}
	}
	if _, err := ParseLimits(FormatLimits(c.Limits)); err != nil {
		return fmt.Errorf("client %s: %w", quoteShort(c.Name), err)
	}
	return nil
}

func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// A line is a client as JSON.
type line struct {
	Client  string     `json:"client"`
	Plan    string     `json:"plan,omitempty"`
	Limits  string     `json:"limits,omitempty"` // as in the database
	Note    string     `json:"note,omitempty"`
	From    *time.Time `json:"valid_from,omitempty"`
	Until   *time.Time `json:"valid_until,omitempty"`
	Updated *time.Time `json:"updated_at,omitempty"`
	Masked  string     `json:"masked,omitempty"` // the masked name; not read
}

// MarshalJSON writes the client under the names of the database's columns, and leaves out unset
// fields. The member masked is the name in logs and statuses.
func (c Client) MarshalJSON() ([]byte, error) { return c.marshal(FormatLimits(c.Limits), "") }

func (c Client) marshal(limits, broken string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // who encodes may still have it escaped
	err := e.Encode(struct {
		line
		Error string `json:"error,omitempty"`
	}{line{
		Client: c.Name, Plan: c.Plan, Limits: limits, Note: c.Note,
		From: pointer(c.From), Until: pointer(c.Until), Updated: pointer(c.Updated),
		Masked: policy.MaskClient(c.Name),
	}, broken})
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON writes. An unknown name is an error, and so is a client that Validate refuses.
func (c *Client) UnmarshalJSON(data []byte) error {
	if !utf8.Valid(data) { // two names would be read as one
		return fmt.Errorf("clients: client is %s; accepted: JSON in UTF-8", quoteShort(string(data)))
	}
	var l line
	if err := unmarshalStrict(data, &l); err != nil {
		return err
	}
	next := Client{Name: l.Client, Plan: l.Plan, Note: l.Note, From: value(l.From), Until: value(l.Until), Updated: value(l.Updated)}
	if l.Limits != "" {
		var err error
		if next.Limits, err = ParseLimits(l.Limits); err != nil {
			return fmt.Errorf("client %s: %w", quoteShort(l.Client), err)
		}
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*c = next
	return nil
}

func pointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func value(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// unmarshalStrict is json.Unmarshal that takes no unknown name, and nothing after the value.
func unmarshalStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands after the JSON object; accepted: one object")
	}
	return nil
}
