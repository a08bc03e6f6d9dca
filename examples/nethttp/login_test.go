package nethttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"golang.org/x/text/secure/precis"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/identity"
)

// maxLogin bounds the body of a login, in bytes.
const maxLogin = 4 << 10

// userKey is the key of the user name in the context of a login.
type userKey struct{}

// userName returns the one form of all spellings of a user name: without spaces around it, in lower
// case, with full-width letters as usual ones, in NFC. Look up this name in the database, too.
func userName(text string) (string, error) {
	return precis.UsernameCaseMapped.String(strings.TrimSpace(text))
}

// withUser reads the user name from the form, as the handler's check of the password does. It
// ignores headers and the query, and refuses a body without a name or beyond the bound.
func withUser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
		if err := r.ParseForm(); err != nil {
			http.Error(w, "the form can't be read", http.StatusBadRequest)
			return
		}
		user, err := userName(r.PostForm.Get("user"))
		if err != nil || user == "" {
			http.Error(w, "the user name is not valid", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// Failed logins are counted by address, and apart from it by user name. The address comes first: a
// client without tries can't make the server read more forms. A limit by both together would give
// each address a budget for each invented name.
func Example_logins() {
	byAddress := must(httplimit.New(must(weir.New(weir.MustParseLimit("4/1h"), weir.WithName("login"))),
		httplimit.Options{Name: "address", Charge: admission.Failures}))
	byUser := must(httplimit.New(must(weir.New(weir.MustParseLimit("2/1h"), weir.WithName("login-user"))), httplimit.Options{
		Name: "user", Key: identity.Key{identity.Context("user", userKey{})}, Charge: admission.Failures,
	}))
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.Context().Value(userKey{}).(string) // and not the form again
		if user != "ann" || r.PostForm.Get("password") != "swordfish" {
			http.Error(w, "wrong user or password", http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /login", byAddress(withUser(byUser(login))))

	post := func(address, user, password string) {
		form := url.Values{"user": {user}, "password": {password}}
		r := httptest.NewRequest(http.MethodPost, "/login?user=other", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-User", "other") // counts for nothing
		r.RemoteAddr = address + ":4711"
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%s %.8s: %d\n", address, strings.TrimSpace(user), w.Code)
	}
	post("192.0.2.1", "ann", "swordfish") // costs nothing
	post("192.0.2.1", "ann", "a")
	post("192.0.2.2", " ANN ", "b") // another spelling, from another address
	post("192.0.2.3", "Ａnn", "c")   // full-width: one too many for the name
	post("192.0.2.1", "bob", "d")   // each address may try several names
	post("192.0.2.1", "carol", "e")
	post("192.0.2.1", "dave", "f")
	post("192.0.2.1", "erin", "g")                           // one too many for the address
	post("192.0.2.4", strings.Repeat("x", maxLogin), "long") // too long
	post("192.0.2.5", " ", "h")                              // no name
	// Output:
	// 192.0.2.1 ann: 204
	// 192.0.2.1 ann: 401
	// 192.0.2.2 ANN: 401
	// 192.0.2.3 Ａnn: 429
	// 192.0.2.1 bob: 401
	// 192.0.2.1 carol: 401
	// 192.0.2.1 dave: 401
	// 192.0.2.1 erin: 429
	// 192.0.2.4 xxxxxxxx: 400
	// 192.0.2.5 : 400
}
