package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"net/http"
)

// Certificate is the SHA-256, in 64 hexadecimal digits, of the certificate that the client has shown, if the server has verified it: its tls.Config has
// VerifyClientCertIfGiven or RequireAndVerifyClientCert. A new certificate is a new client: by [CertificateName] it is not.
func Certificate() Source {
	return Source{name: "certificate", find: func(r *http.Request) string {
		c := verified(r)
		if c == nil {
			return ""
		}
		sum := sha256.Sum256(c.Raw)
		return hex.EncodeToString(sum[:])
	}}
}

// CertificateName is who the client's certificate says that it is, if the server has verified it: the first URI that it is for, such as uri:spiffe://example.com/shop, else the first
// name of DNS, as dns:shop.example.com, else its subject, as subject:CN=shop,O=Example. That names one client if all who sign for the server give a name to one client only.
func CertificateName() Source {
	return Source{name: "certificate_name", find: func(r *http.Request) string {
		c := verified(r)
		switch {
		case c == nil:
			return ""
		case len(c.URIs) > 0:
			return "uri:" + c.URIs[0].String()
		case len(c.DNSNames) > 0:
			return "dns:" + c.DNSNames[0]
		}
		var subject pkix.RDNSequence // and not c.Subject, which has one common name only
		if rest, err := asn1.Unmarshal(c.RawSubject, &subject); err != nil || len(rest) > 0 || len(subject) == 0 {
			return ""
		}
		return "subject:" + subject.String()
	}}
}

// verified returns the client's certificate, or nil if it has shown none that was verified.
func verified(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}
