package header

import (
	"testing"

	"github.com/dunglas/httpsfv"
)

func TestFields(t *testing.T) {
	if _, err := httpsfv.UnmarshalList([]string{`"a";q=1`}); err != nil {
		t.Fatal(err)
	}
}
