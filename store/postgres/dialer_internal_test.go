package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A dialer closes the connections that are open, and those that are made later.
func TestDialerCloses(t *testing.T) {
	var ends []net.Conn
	config := &pgconn.Config{DialFunc: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		ends = append(ends, far)
		return near, nil
	}}
	d := newDialer(config)
	connect := func() net.Conn {
		t.Helper()
		c, err := config.DialFunc(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	connect().Close()
	connect()
	if len(d.conns) != 1 {
		t.Errorf("%d connections are known, want 1", len(d.conns))
	}
	d.close()
	if c, err := config.DialFunc(t.Context(), "tcp", ""); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, %v after close; want net.ErrClosed", c, err)
	}
	for i, end := range ends {
		if _, err := end.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // as Read returns it
			t.Errorf("connection %d: %v, want the end of the stream", i, err)
		}
	}
}
