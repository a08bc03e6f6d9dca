package resp

import (
	"bytes"
	"slices"
)

// httpMethods are the methods of a request line without a version, as in HTTP/0.9.
var httpMethods = []string{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "PUT", "TRACE"}

// isHTTP reports whether the words of a line belong to the head of an HTTP request. A web page can
// make a browser send one here, with commands in its body. The connection is closed before they are
// read.
func (c *conn) isHTTP(words [][]byte) bool {
	switch {
	case len(words) == 0:
		return false
	case c.is(words[0], "POST"), c.is(words[0], "HOST:"):
		return true
	case len(words) == 3 && bytes.HasPrefix(words[2], []byte("HTTP/")):
		return true
	case len(words) == 2 && bytes.HasPrefix(words[1], []byte("/")):
		return slices.Contains(httpMethods, string(c.upper(words[0])))
	}
	return false
}
