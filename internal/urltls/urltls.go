// Package urltls reads the parameters of a URL that configure TLS: ca, cert, key, server_name and
// insecure_skip_verify.
package urltls

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
)

// Names are the names of the parameters, for errors.
const Names = "ca, cert, key, server_name, insecure_skip_verify"

var names = []string{"ca", "cert", "key", "server_name", "insecure_skip_verify"}

// Has reports whether a parameter configures TLS.
func Has(name string) bool { return slices.Contains(names, name) }

// Parameters are the parameters of a URL. The zero value has none.
type Parameters struct {
	config    tls.Config
	cert, key string
}

// Set sets a parameter of Names. An error names the parameter, its value and the accepted values, and
// continues a text such as "URL has".
func (p *Parameters) Set(name, value string) error {
	switch name {
	case "cert":
		p.cert = value
	case "key":
		p.key = value
	case "server_name":
		p.config.ServerName = value
	case "ca":
		pem, err := os.ReadFile(value) //nolint:gosec // the path is the operator's
		if err != nil {
			return fmt.Errorf("ca %q: %w", value, err)
		}
		p.config.RootCAs = x509.NewCertPool()
		if !p.config.RootCAs.AppendCertsFromPEM(pem) {
			return refuse(name, value, "a file with certificates in PEM")
		}
	case "insecure_skip_verify":
		skip, err := strconv.ParseBool(value)
		if err != nil {
			return refuse(name, value, "true or false")
		}
		p.config.InsecureSkipVerify = skip //nolint:gosec // documented as for tests
	default:
		return refuse("parameter", name, Names)
	}
	return nil
}

func refuse(part, value, accept string) error {
	return fmt.Errorf("%s %.100q; accepted: %s", part, value, accept)
}

// Config returns the configuration of a client. Its certificate is read again for each connection,
// and a pair that can't be read leaves the previous pair in use.
func (p *Parameters) Config() (*tls.Config, error) {
	if (p.cert == "") != (p.key == "") {
		return nil, refuse("cert and key", p.cert+p.key, "both, or none")
	}
	config := p.config.Clone()
	config.MinVersion = tls.VersionTLS12
	if p.cert == "" {
		return config, nil
	}
	first, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, fmt.Errorf("cert %q and key %q: %w", p.cert, p.key, err)
	}
	pair := &pair{cert: p.cert, key: p.key, last: &first}
	config.GetClientCertificate = pair.read
	return config, nil
}

// A pair is a certificate with its key, in files that may change.
type pair struct {
	cert, key string

	mu   sync.Mutex
	last *tls.Certificate
}

// read is for [tls.Config.GetClientCertificate].
func (p *pair) read(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	fresh, err := tls.LoadX509KeyPair(p.cert, p.key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.last = &fresh
	}
	return p.last, nil
}
