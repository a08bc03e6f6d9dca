package httpapi

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// crossOrigin has no exceptions, and is never changed.
var crossOrigin http.CrossOriginProtection

// checkOrigin keeps the pages of other sites from making their reader's browser take, refund or reset, on a server that
// only that machine reaches, too. Programs send neither of the two headers, browsers at least Origin with every POST.
//
// A page can also come to have the origin of this server, by giving its own name the server's address once it is
// loaded. So a page has to name the server by what nobody else can give an address to. The other methods are left alone:
// they change nothing, and what they answer says nothing of a key.
func checkOrigin(r *http.Request) *Problem {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin == "" && site == "" || r.Method != http.MethodPost {
		return nil
	}
	var p *Problem
	switch {
	case crossOrigin.Check(r) != nil:
		p = refuse("Origin", cmp.Or(origin, "unsaid, and "+site), "none, or this server's own")
	case !isAddress(r.Host):
		p = refuse("Host", r.Host, "from a browser, an IP address or localhost")
	default:
		return nil
	}
	p.Status = http.StatusForbidden
	return p
}

// isAddress reports whether a Host needs no DNS to be found.
func isAddress(hostport string) bool {
	host := (&url.URL{Host: hostport}).Hostname()
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}
