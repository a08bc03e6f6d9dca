package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// Header is the first value of a header field. A client can send what it likes.
func Header(name string) Source {
	name = http.CanonicalHeaderKey(name)
	return Func("header:"+name, func(r *http.Request) string { return r.Header.Get(name) })
}

// Cookie is the first value of a cookie. A client can send what it likes.
func Cookie(name string) Source {
	return Func("cookie:"+name, func(r *http.Request) string {
		c, err := r.Cookie(name)
		if err != nil {
			return ""
		}
		return c.Value
	})
}

// BasicUser is the user of basic authentication, as the client says it: nobody has looked at the password.
func BasicUser() Source {
	return Func("basic_user", func(r *http.Request) string {
		user, _, _ := r.BasicAuth()
		return user
	})
}

// Certificate is the SHA-256 of the certificate that the client has shown, if the server has verified it.
func Certificate() Source {
	return Func("certificate", func(r *http.Request) string {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return ""
		}
		sum := sha256.Sum256(r.TLS.PeerCertificates[0].Raw)
		return hex.EncodeToString(sum[:])
	})
}

// Context is a value of the request's context, a string or something that has a String method: what an earlier handler has found out, such as the user that it let in.
func Context(name string, key any) Source {
	return Func("context:"+name, func(r *http.Request) string {
		switch v := r.Context().Value(key).(type) {
		case string:
			return v
		case interface{ String() string }:
			return v.String()
		}
		return ""
	})
}
