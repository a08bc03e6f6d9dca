package policy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
)

// A long value is hashed once per request, also if each of 50 policies has it in its key.
func TestValuesAreHashedOnce(t *testing.T) {
	c := &Config{}
	for i := range 50 {
		c.Policies = append(c.Policies, Policy{Name: fmt.Sprint("p", i), Key: []string{"hash:header:X-A", "header:X-A"}, Limits: []NamedLimit{{Limit: "1/1s"}}})
	}
	s, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", MaxValue)
	f := facts{Request: &Request{Header: http.Header{"X-A": {long}}}}
	list, err := s.load().applied(&f, nil)
	if err != nil || len(list) != 50 || f.codes[1].source == "" || f.codes[2].source != "" {
		t.Fatalf("%d policies, hashes %.300v, error %v; want 50, and 2 hashes", len(list), f.codes, err)
	}
	for _, a := range list {
		if want := "#" + identity.Hash(long); a.key != want+","+identity.Encode(long) {
			t.Fatalf("the key is %q", a.key)
		}
	}
}
