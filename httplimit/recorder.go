package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// A recorder records the status and the size of a response while it is written.
type recorder struct {
	to       http.ResponseWriter
	head     bool // no body is sent
	fallback int  // the status of a response without one; 0: that of net/http, which is 200
	status   int  // 0: none yet
	bytes    int64
}

// code returns the status of the response: 500 for a handler that has not returned, whatever it has sent.
func (r *recorder) code(returned bool) int {
	switch {
	case !returned:
		return http.StatusInternalServerError
	case r.status == 0:
		return http.StatusOK
	}
	return r.status
}

// setStatus records the status, if it is the first, and not an informational one.
func (r *recorder) setStatus(status int) {
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
}

// begin sends the fallback of a response without a status, before its body is written.
func (r *recorder) begin() {
	if r.status == 0 && r.fallback != 0 {
		r.to.WriteHeader(r.fallback)
		r.status = r.fallback
	}
}

// addBytes records n bytes of the body.
func (r *recorder) addBytes(n int64) {
	r.setStatus(http.StatusOK)
	if !r.head {
		r.bytes += n
	}
}

// wrap returns w with all its optional interfaces. The recorder records the calls.
func (r *recorder) wrap(w http.ResponseWriter) http.ResponseWriter {
	r.to = w
	return httpsnoop.Wrap(withControls(w), httpsnoop.Hooks{
		WriteHeader: r.onWriteHeader, Write: r.onWrite, WriteString: r.onWriteString, ReadFrom: r.onReadFrom, Flush: r.onFlush, FlushError: r.onFlushError, Hijack: r.onHijack,
	})
}

func (r *recorder) onWriteHeader(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
	return func(code int) {
		next(code)
		r.setStatus(code)
	}
}

func (r *recorder) onWrite(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
	return func(b []byte) (int, error) {
		r.begin()
		n, err := next(b)
		r.addBytes(int64(n))
		return n, err
	}
}

func (r *recorder) onWriteString(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
	return func(s string) (int, error) {
		r.begin()
		n, err := next(s)
		r.addBytes(int64(n))
		return n, err
	}
}

func (r *recorder) onReadFrom(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
	return func(src io.Reader) (int64, error) {
		r.begin()
		n, err := next(src)
		r.addBytes(n)
		return n, err
	}
}

func (r *recorder) onFlush(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
	return func() {
		r.begin()
		next()
		r.setStatus(http.StatusOK)
	}
}

func (r *recorder) onFlushError(next httpsnoop.FlushErrorFunc) httpsnoop.FlushErrorFunc {
	return func() error {
		r.begin()
		err := next()
		if err == nil {
			r.setStatus(http.StatusOK)
		}
		return err
	}
}

// onHijack counts a hijacked connection as one that has switched protocols. Its bytes are not recorded.
func (r *recorder) onHijack(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
	return func() (net.Conn, *bufio.ReadWriter, error) {
		conn, buffered, err := next()
		if err == nil {
			r.setStatus(http.StatusSwitchingProtocols)
		}
		return conn, buffered, err
	}
}

// withControls returns w, or, if only a writer that w wraps can flush or hijack, a writer that can do so
// itself. Otherwise an [http.ResponseController] would unwrap the recorder, which would miss the call.
func withControls(w http.ResponseWriter) http.ResponseWriter {
	flushes := isA[http.Flusher](w) || isA[flusher](w) || !reaches[http.Flusher](w) && !reaches[flusher](w)
	hijacks := isA[http.Hijacker](w) || !reaches[http.Hijacker](w)
	if flushes && hijacks {
		return w
	}
	return &through{w}
}

// A flusher is an http.Flusher with an error.
type flusher interface{ FlushError() error }

func isA[T any](w http.ResponseWriter) bool {
	_, is := w.(T)
	return is
}

// reaches reports whether w is a T, or wraps one.
func reaches[T any](w http.ResponseWriter) bool {
	for !isA[T](w) {
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = wrapper.Unwrap()
	}
	return true
}

// through calls the controls of the writers that its writer wraps.
type through struct{ http.ResponseWriter }

// Unwrap is for the other methods of a ResponseController.
func (t *through) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *through) Flush() { _ = t.FlushError() } // http.Flusher has no error to return

func (t *through) FlushError() error { return http.NewResponseController(t.ResponseWriter).Flush() }

func (t *through) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(t.ResponseWriter).Hijack()
}

func (t *through) WriteString(s string) (int, error) { return io.WriteString(t.ResponseWriter, s) }

func (t *through) ReadFrom(src io.Reader) (int64, error) { return io.Copy(t.ResponseWriter, src) }
