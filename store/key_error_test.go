package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirlimit/weir/store"
)

func TestWithoutKeys(t *testing.T) {
	ann := &store.KeyError{Key: "rl:ann@example.com", Err: errors.New("WRONGTYPE")}
	bob := &store.KeyError{Key: "rl:b\"ob", Err: ann}
	for want, err := range map[string]error{
		"no answer": errors.New("no answer"),
		"WRONGTYPE: the value of a key is no state of this limit":                                                             ann,
		"take: WRONGTYPE: the value of a key is no state of this limit; x":                                                    fmt.Errorf("take: %w; %w", ann, errors.New("x")),
		"WRONGTYPE: the value of a key is no state of this limit: the value of a key is no state of this limit":               bob,
		"no answer\nb: WRONGTYPE: the value of a key is no state of this limit: the value of a key is no state of this limit": errors.Join(errors.New("no answer"), fmt.Errorf("b: %w", bob)),
	} {
		if got := store.WithoutKeys(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if text := bob.Error(); text != `WRONGTYPE: the value of "rl:ann@example.com" is no state of this limit: the value of "rl:b\"ob" is no state of this limit` {
		t.Error(text)
	}
}
