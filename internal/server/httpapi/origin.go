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

// HostsAccepted describes the accepted Host of a request.
const HostsAccepted = "an IP address, localhost, a name without dots or below internal, home.arpa, svc or svc.cluster.local, or a name of --http-host"

// localDomains are domains outside of public registries: nobody can point their names at a foreign
// address.
var localDomains = []string{".localhost", ".internal", ".home.arpa", ".svc", ".svc.cluster.local"}

// checkBrowser refuses a browser's requests for a page of a foreign site, with every method.
//
// A page of a foreign site can reach this server in two ways. It can send a request to the server's
// address: the browser then adds the page's Origin to every POST, and lets the page read no reply.
// Or, once loaded, it can give its own name the server's address (DNS rebinding): the browser then
// takes the server for the page's own, sends no Origin with a GET, and lets the page read the
// reply. The Host is then the page's name. So the server accepts only names beyond a stranger's
// control.
func (s *Server) checkBrowser(r *http.Request) *Problem {
	var p *Problem
	switch {
	case !s.acceptsHost(r.Host):
		p = refuse("Host", r.Host, HostsAccepted)
	case crossOrigin.Check(r) != nil: // GET, HEAD and OPTIONS pass: they change nothing
		origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
		p = refuse("Origin", cmp.Or(origin, "unsaid, and "+site), "none, or this server's own")
	default:
		return nil
	}
	p.Status = http.StatusForbidden
	return p
}

// acceptsHost reports whether the server answers to a Host. Programs of HTTP/1.0 send none;
// browsers always do.
func (s *Server) acceptsHost(hostport string) bool {
	host := hostname(hostport)
	if !strings.Contains(host, ".") && !strings.Contains(host, ":") {
		return true // a name of the local network, or none
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for _, domain := range localDomains {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	for _, name := range s.opts.Hosts {
		domain, wildcard := strings.CutPrefix(hostname(name), "*")
		if host == domain || wildcard && strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

// hostname returns the name or the address of a Host, without the port, in lower case.
func hostname(hostport string) string {
	return strings.ToLower(strings.TrimSuffix((&url.URL{Host: hostport}).Hostname(), "."))
}
