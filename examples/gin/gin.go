// Package ginlimit lets gin use middleware of net/http, such as weir's. Copy it.
package ginlimit

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Wrap makes a handler of gin from middleware of net/http. If the middleware answers itself, the handlers that follow do not run.
func Wrap(middleware func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		request, response, passed := c.Request, c.Writer, false
		defer func() { c.Request, c.Writer = request, response }() // also when a handler panics
		middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen := writer{response, w}
			c.Request, c.Writer, passed = r, seen, true
			c.Next()
			seen.status() // gin has not written it yet if there is no body. c.Writer may be another by now
		})).ServeHTTP(response, request)
		if !passed {
			c.Abort()
		}
	}
}

// A writer is gin's, and writes through the one that the middleware gave, so that the middleware sees what is answered.
type writer struct {
	gin.ResponseWriter
	through http.ResponseWriter
}

// status says the status before anything is written. Until then gin only remembers it, and it may still change.
func (w writer) status() {
	if !w.Written() {
		w.through.WriteHeader(w.Status())
	}
}

func (w writer) Write(p []byte) (int, error) {
	w.status()
	return w.through.Write(p)
}

func (w writer) WriteString(s string) (int, error) {
	w.status()
	return io.WriteString(w.through, s)
}

func (w writer) WriteHeaderNow() {
	w.status()
	w.ResponseWriter.WriteHeaderNow()
}

func (w writer) Flush() {
	w.status()
	_ = http.NewResponseController(w.through).Flush() // http.Flusher has no error to return
}

func (w writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.through).Hijack()
}

// Unwrap is for http.ResponseController.
func (w writer) Unwrap() http.ResponseWriter { return w.through }
