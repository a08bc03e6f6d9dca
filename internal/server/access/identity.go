package access

import (
	"crypto/tls"
	"strings"
)

// An Identity is a name in a client certificate: the common name of the subject, or a DNS name, URI
// or email address of the subject alternative names. Names are compared as texts, DNS names in
// lower case; a name with a wildcard is the text.
type Identity struct {
	Kind string // cn, dns, uri or email
	Name string
}

// identityKinds are the kinds of names in certificates.
var identityKinds = []string{"cn", "dns", "uri", "email"}

func newIdentity(kind, name string) Identity {
	if kind == "dns" {
		name = strings.ToLower(name)
	}
	return Identity{kind, name}
}

// identities returns the names in the certificate that the client proved to have. Without a
// certificate that an accepted authority signed, there are none.
func identities(state *tls.ConnectionState) (list []Identity) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil
	}
	cert := state.VerifiedChains[0][0]
	add := func(kind, name string) {
		if name != "" {
			list = append(list, newIdentity(kind, name))
		}
	}
	add("cn", cert.Subject.CommonName)
	for _, name := range cert.DNSNames {
		add("dns", name)
	}
	for _, uri := range cert.URIs {
		add("uri", uri.String())
	}
	for _, address := range cert.EmailAddresses {
		add("email", address)
	}
	return list
}
