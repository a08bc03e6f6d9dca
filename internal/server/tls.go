package server

import (
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/weirlimit/weir/internal/server/certificates"
	"github.com/weirlimit/weir/internal/server/httpapi"
)

// tlsFields are the flags of the files of a certificate.
var tlsFields = map[certificates.File]string{
	certificates.Cert: "tls-cert", certificates.Key: "tls-key", certificates.ClientCA: "tls-client-ca",
}

// checkTLS checks the paths of certificates before their files are read.
func (c Config) checkTLS() error {
	switch {
	case c.TLSCert == "" && c.TLSKey != "":
		return &ConfigError{"tls-key", strconv.Quote(c.TLSKey), "there is no certificate for it", "nothing, or tls-cert too"}
	case c.TLSCert != "" && c.TLSKey == "":
		return &ConfigError{"tls-cert", strconv.Quote(c.TLSCert), "its key is missing", "tls-key too"}
	case c.TLSCert == "" && c.TLSClientCA != "":
		return &ConfigError{"tls-client-ca", strconv.Quote(c.TLSClientCA), "clients have a certificate only with TLS", "nothing, or tls-cert and tls-key too"}
	}
	return nil
}

// authenticated reports whether clients have to prove their identity.
func (c Config) authenticated() bool { return c.TLSClientCA != "" || c.Users != "" }

// lacks describes the protection that an address beyond this machine lacks, or is "".
func (c Config) lacks() string {
	switch {
	case c.TLSCert == "" && !c.authenticated():
		return "TLS and authentication"
	case c.TLSCert == "":
		return "TLS"
	case !c.authenticated():
		return "authentication"
	}
	return ""
}

// exposed returns a *ConfigError for an address beyond this machine without protection.
func (c Config) exposed(field, address string) error {
	lacks := c.lacks()
	if c.Insecure || lacks == "" {
		return nil
	}
	return &ConfigError{field, address, "listening beyond this machine without " + lacks,
		"an address of 127.0.0.1, unix:/path, tls-cert and tls-key with users or tls-client-ca, or insecure, which lets everybody connect"}
}

// checkExposed is exposed for an address without a name: names are resolved when the server listens.
func (c Config) checkExposed(field, address string) error {
	if address == Off || isUnix(address) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if is, known := local(host); err != nil || is || !known {
		return nil //nolint:nilerr // address has refused an error
	}
	return c.exposed(field, address)
}

// openCertificates reads the certificates of the configuration. It returns nil without TLS.
func (c Config) openCertificates() (*certificates.Certificates, error) {
	if c.TLSCert == "" {
		return nil, nil //nolint:nilnil // documented
	}
	loaded, err := certificates.Load(certificates.Paths{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA}, c.Log)
	if file, ok := errors.AsType[*certificates.Error](err); ok {
		return nil, &ConfigError{tlsFields[file.File], file.Path, file.Problem, file.Accept}
	}
	return loaded, err
}

// certificateStatus returns the status of the certificate, or nil.
func certificateStatus(c *certificates.Certificates) *httpapi.CertificateStatus {
	if c == nil {
		return nil
	}
	s, now := c.Status(), time.Now()
	return &httpapi.CertificateStatus{
		Names: s.Names, Expires: s.NotAfter, Expired: s.Expired(now), Soon: s.Soon(now), Change: httpapi.NewChange(s.Loaded, s.Err, s.Failed),
	}
}
