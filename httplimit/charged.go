package httplimit

import (
	"net/http"

	"github.com/weirlimit/weir/admission"
)

// charged serves a request whose cost is known when it is answered.
func (l *limited) charged(w http.ResponseWriter, r *http.Request, a admission.Admission) {
	seen := answer{head: r.Method == http.MethodHead}
	w = seen.watch(w)
	returned := false
	defer func() { // also while the handler's panic goes on
		a.Finish(admission.Response{Status: seen.code(returned), Bytes: seen.bytes, Header: w.Header()})
	}()
	if l.await(w, r, &a) {
		l.next.ServeHTTP(w, r)
	}
	returned = true
}
