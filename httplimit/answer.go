package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// An answer is what is seen of a response while it is written.
type answer struct {
	to        http.ResponseWriter
	head      bool // no body is sent
	otherwise int  // the status of what is written without one; 0: that of net/http, which is 200
	status    int  // 0: none yet
	bytes     int64
}

// code is the status of an answer: of a handler that has not returned it is 500, whatever it had begun to send.
func (a *answer) code(returned bool) int {
	switch {
	case !returned:
		return http.StatusInternalServerError
	case a.status == 0:
		return http.StatusOK
	}
	return a.status
}

// said notes a status, if it is the first, and no announcement of it.
func (a *answer) said(status int) {
	if a.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		a.status = status
	}
}

// begin sends the status of an answer that has none, before its body is written.
func (a *answer) begin() {
	if a.status == 0 && a.otherwise != 0 {
		a.to.WriteHeader(a.otherwise)
		a.status = a.otherwise
	}
}

// wrote notes so many bytes of a body.
func (a *answer) wrote(n int64) {
	a.said(http.StatusOK)
	if !a.head {
		a.bytes += n
	}
}

// watch returns w with everything that it can do, and what is written to it is seen.
func (a *answer) watch(w http.ResponseWriter) http.ResponseWriter {
	a.to = w
	return httpsnoop.Wrap(reach(w), httpsnoop.Hooks{
		WriteHeader: a.onWriteHeader, Write: a.onWrite, WriteString: a.onWriteString, ReadFrom: a.onReadFrom, Flush: a.onFlush, FlushError: a.onFlushError, Hijack: a.onHijack,
	})
}

func (a *answer) onWriteHeader(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
	return func(code int) {
		next(code)
		a.said(code)
	}
}

func (a *answer) onWrite(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
	return func(b []byte) (int, error) {
		a.begin()
		n, err := next(b)
		a.wrote(int64(n))
		return n, err
	}
}

func (a *answer) onWriteString(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
	return func(s string) (int, error) {
		a.begin()
		n, err := next(s)
		a.wrote(int64(n))
		return n, err
	}
}

func (a *answer) onReadFrom(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
	return func(src io.Reader) (int64, error) {
		a.begin()
		n, err := next(src)
		a.wrote(n)
		return n, err
	}
}

func (a *answer) onFlush(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
	return func() {
		a.begin()
		next()
		a.said(http.StatusOK)
	}
}

func (a *answer) onFlushError(next httpsnoop.FlushErrorFunc) httpsnoop.FlushErrorFunc {
	return func() error {
		a.begin()
		err := next()
		if err == nil {
			a.said(http.StatusOK)
		}
		return err
	}
}

// onHijack counts a connection that is taken over as one that has switched protocols. What goes over it is not seen.
func (a *answer) onHijack(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
	return func() (net.Conn, *bufio.ReadWriter, error) {
		conn, buffered, err := next()
		if err == nil {
			a.said(http.StatusSwitchingProtocols)
		}
		return conn, buffered, err
	}
}
