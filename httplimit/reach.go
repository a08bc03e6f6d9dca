package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// reach returns w, or, if w flushes or hijacks only through what it wraps, a writer that does so itself. Otherwise an [http.ResponseController] would
// unwrap it, and who watches w would not see what is done.
func reach(w http.ResponseWriter) http.ResponseWriter {
	flushes := isA[http.Flusher](w) || isA[flusher](w) || !reaches[http.Flusher](w) && !reaches[flusher](w)
	hijacks := isA[http.Hijacker](w) || !reaches[http.Hijacker](w)
	if flushes && hijacks {
		return w
	}
	return &through{w}
}

// A flusher is an http.Flusher that says whether it did.
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

// through does what the writer that it wraps can do through others.
type through struct{ http.ResponseWriter }

// Unwrap is for what else a ResponseController does.
func (t *through) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *through) Flush() { _ = t.FlushError() } // http.Flusher has no error to return

func (t *through) FlushError() error { return http.NewResponseController(t.ResponseWriter).Flush() }

func (t *through) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(t.ResponseWriter).Hijack()
}

func (t *through) WriteString(s string) (int, error) { return io.WriteString(t.ResponseWriter, s) }

func (t *through) ReadFrom(src io.Reader) (int64, error) { return io.Copy(t.ResponseWriter, src) }
