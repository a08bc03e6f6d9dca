package engines

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/weirlimit/weir/store"
)

// Transient reports whether an error of Open is that of an engine which may serve later: it can't be
// reached, does not reply, or is starting. A wrong URL and a refused password are not transient.
func Transient(err error) bool {
	var network net.Error
	switch {
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF),
		errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ENOENT):
		return true
	}
	for _, starting := range []string{"LOADING ", "CLUSTERDOWN ", "MASTERDOWN ", "SQLSTATE 57P03", "no answer within"} {
		if strings.Contains(err.Error(), starting) {
			return true
		}
	}
	return errors.Is(err, store.ErrUnavailable)
}
