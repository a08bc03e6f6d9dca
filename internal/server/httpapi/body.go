package httpapi

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads the whole body into b, if it may be JSON by its headers and is not too large.
func readBody(w http.ResponseWriter, r *http.Request, b *bytes.Buffer) *Problem {
	if p := checkHeaders(r); p != nil {
		return p
	}
	if r.ContentLength > MaxBody {
		w.Header().Set("Connection", "close")
		return tooLarge(strconv.FormatInt(r.ContentLength, 10) + " bytes")
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge("of more than " + strconv.Itoa(MaxBody) + " bytes")
	case err != nil:
		return refuse("body", "cut short", "a whole body, sent within "+readTimeout.String())
	}
	return nil
}

func tooLarge(value string) *Problem {
	p := refuse("body", value, "at most "+strconv.Itoa(MaxBody)+" bytes")
	p.Status = http.StatusRequestEntityTooLarge
	return p
}

// checkHeaders refuses what can't be the plain JSON that is read here, whatever the type says: curl -d says that it
// sends a form.
func checkHeaders(r *http.Request) *Problem {
	var p *Problem
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		p = refuse("Content-Encoding", encoding, "none")
	} else if kind := r.Header.Get("Content-Type"); !mayBeJSON(kind) {
		p = refuse("Content-Type", kind, "application/json")
	}
	if p != nil {
		p.Status = http.StatusUnsupportedMediaType
	}
	return p
}

func mayBeJSON(contentType string) bool {
	switch contentType {
	case "", "application/json", "application/x-www-form-urlencoded":
		return true
	}
	kind, params, _ := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return !strings.HasPrefix(kind, "multipart/") && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
