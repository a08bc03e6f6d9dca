package server

import (
	"errors"
	"testing"
)

func TestErrorOfAStoreThatCantBeOpened(t *testing.T) {
	for problem, want := range map[string]string{
		"store is rediss://h:1: the server at h:1 does not speak TLS; accepted: redis://": "store rediss://h:1: the server at h:1 does not speak TLS; accepted: redis://",
		"the password is wrong": "store rediss://h:1: the password is wrong; accepted: a store that answers",
	} {
		if err := openError("rediss://u:secret@h:1", errors.New(problem)); err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
