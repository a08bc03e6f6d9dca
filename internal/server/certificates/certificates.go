// Package certificates reads the certificate of a TLS server, its key, and the authorities of its
// clients, and follows their files.
package certificates

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/internal/follow"
)

const (
	// expiresSoon is how long before the end of a certificate Status.Soon begins to report it.
	expiresSoon = 7 * 24 * time.Hour

	maxFile = 1 << 20 // bytes
)

// A File is one of the files of a server.
type File string

// The files.
const (
	Cert     File = "cert"
	Key      File = "key"
	ClientCA File = "client-ca"
)

// An Error is the reason for which a file can't be used.
type Error struct {
	File          File
	Path, Problem string
	Accept        string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %s; accepted: %s", e.File, e.Path, e.Problem, e.Accept)
}

// Paths are the paths of the files, in PEM.
type Paths struct {
	// Cert is a certificate with its intermediate certificates, and Key its key, which not everybody
	// may read.
	Cert, Key string
	// ClientCA has the certificates of the authorities of clients, which then need a certificate of
	// one of them. Empty: clients need none.
	ClientCA string
}

// Certificates are the certificates in use. They may be used by many goroutines at once.
type Certificates struct {
	paths   Paths
	log     *slog.Logger
	current atomic.Pointer[loaded]

	mu     sync.Mutex // of a change
	status Status
}

// loaded is the content of valid files.
type loaded struct {
	sum     [sha256.Size]byte
	pair    tls.Certificate
	clients *x509.CertPool // nil: clients need no certificate
}

// A Status is the state of the certificates.
type Status struct {
	// Names are the names and addresses of the server's certificate. NotBefore and NotAfter are its
	// time.
	Names               []string
	NotBefore, NotAfter time.Time
	// Loaded is the time at which the files in use were read.
	Loaded time.Time
	// Err is the reason for which the last change was rejected, at Failed. Nil: the files are in use.
	Err    error
	Failed time.Time
}

// Expired reports whether the certificate's time is over.
func (s Status) Expired(now time.Time) bool { return now.After(s.NotAfter) }

// Soon reports whether the certificate's time is over within a week, or is over.
func (s Status) Soon(now time.Time) bool { return now.Add(expiresSoon).After(s.NotAfter) }

// Load reads the files. Errors are of type *Error. log receives the times of certificates, and
// rejected changes.
func Load(paths Paths, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{paths: paths, log: log}
	data, err := c.read()
	if err != nil {
		return nil, err
	}
	if err := c.apply(data, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns a function for the configuration of the next handshake, with the certificates that
// are then in use, and the application protocols in order of preference. Session tickets of a
// configuration are valid until the files change.
func (c *Certificates) Config(protocols ...string) func() *tls.Config {
	var mu sync.Mutex
	var of *loaded
	var config *tls.Config
	return func() *tls.Config {
		l := c.current.Load()
		mu.Lock()
		defer mu.Unlock()
		if of != l {
			of, config = l, l.config(protocols)
		}
		return config
	}
}

func (l *loaded) config(protocols []string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{l.pair}, NextProtos: protocols}
	if l.clients != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, l.clients
	}
	return config
}

// Status returns the state of the certificates.
func (c *Certificates) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Reload reads the files again. After an error the previous files stay in use, and the log has the
// error.
func (c *Certificates) Reload() error {
	data, err := follow.ReadSteady(c.read)
	return c.change(data, err, true)
}

// Follow reads the files again whenever they change, until ctx ends; it returns ctx's error.
func (c *Certificates) Follow(ctx context.Context) error {
	return follow.Follow(ctx, follow.File{
		Path: c.paths.Cert, Read: func(context.Context) ([]byte, error) { return c.read() }, Seen: c.current.Load().sum, Log: c.log,
		Apply: func(data []byte, err error) error { return c.change(data, err, false) },
	})
}

// files are the contents of the files.
type files struct {
	Cert     []byte `json:"cert"`
	Key      []byte `json:"key"`
	ClientCA []byte `json:"client_ca"`
}

// read returns the contents of all files as one text, so they change together.
func (c *Certificates) read() ([]byte, error) {
	var f files
	var err error
	if f.Cert, err = readFile(Cert, c.paths.Cert, follow.ReadRegular); err != nil {
		return nil, err
	}
	if f.Key, err = readFile(Key, c.paths.Key, follow.ReadSecret); err != nil {
		return nil, err
	}
	if c.paths.ClientCA != "" {
		if f.ClientCA, err = readFile(ClientCA, c.paths.ClientCA, follow.ReadRegular); err != nil {
			return nil, err
		}
	}
	return json.Marshal(f)
}

var accepted = map[File]string{
	Cert:     "a file of up to 1 MiB with the server's certificate in PEM, and then the intermediate certificates",
	Key:      "a file with the key of the certificate in PEM, unencrypted, that not everybody can read, as chmod 600 makes",
	ClientCA: "a file of up to 1 MiB with the certificates of authorities in PEM",
}

func readFile(file File, path string, read func(string, int64) ([]byte, error)) ([]byte, error) {
	data, err := read(path, maxFile)
	if err == nil && len(data) > maxFile {
		err = errors.New("more than 1 MiB")
	}
	if err == nil {
		return data, nil
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return nil, &Error{file, path, err.Error(), accepted[file]}
}

// change takes new contents into use, or rejects them. It logs a known error only if asked to.
func (c *Certificates) change(data []byte, err error, known bool) error {
	if err = c.apply(data, err); err == nil {
		return nil
	}
	c.mu.Lock()
	before := c.status.Err
	c.status.Err, c.status.Failed = err, time.Now()
	c.mu.Unlock()
	if known || before == nil || before.Error() != err.Error() {
		c.log.Error("a change of the certificates is rejected; the previous certificates stay in use", "error", err)
	}
	return err
}

// apply takes valid contents into use.
func (c *Certificates) apply(data []byte, err error) error {
	var f files
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		return err
	}
	l := &loaded{sum: follow.Digest(data, nil)}
	if l.pair, err = c.pair(f); err != nil {
		return err
	}
	if c.paths.ClientCA != "" {
		if l.clients, err = pool(f.ClientCA); err != nil {
			return &Error{ClientCA, c.paths.ClientCA, err.Error(), accepted[ClientCA]}
		}
	}
	c.use(l)
	return nil
}

func (c *Certificates) pair(f files) (tls.Certificate, error) {
	if _, err := parse(f.Cert); err != nil {
		return tls.Certificate{}, &Error{Cert, c.paths.Cert, err.Error(), accepted[Cert]}
	}
	pair, err := tls.X509KeyPair(f.Cert, f.Key)
	if err != nil {
		return pair, &Error{Key, c.paths.Key, err.Error(), accepted[Key]}
	}
	if key, ok := pair.PrivateKey.(crypto.Signer); ok {
		pair.PrivateKey = signer{key, signatures}
	}
	return pair, nil
}

// use takes valid certificates into use, and logs their time.
func (c *Certificates) use(l *loaded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(l)
	leaf, now := l.pair.Leaf, time.Now()
	names := append([]string{}, leaf.DNSNames...) // not nil, which JSON shows as null
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	c.status = Status{Names: names, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Loaded: now}
	attributes := []any{"file", c.paths.Cert, "names", names, "expires", leaf.NotAfter, "client_certificates", l.clients != nil}
	switch {
	case c.status.Expired(now):
		c.log.Warn("the certificate has expired: clients refuse it", attributes...)
	case now.Before(leaf.NotBefore):
		c.log.Warn("the certificate is not valid yet: clients refuse it", append(attributes, "from", leaf.NotBefore)...)
	case c.status.Soon(now):
		c.log.Warn("the certificate expires within 7 days", attributes...)
	default:
		c.log.Info("the certificate is in use", attributes...)
	}
}

// parse returns the certificates of a text in PEM, at least one.
func parse(text []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	return all, nil
}

func pool(text []byte) (*x509.CertPool, error) {
	all, err := parse(text)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	for _, certificate := range all {
		p.AddCert(certificate)
	}
	return p, nil
}

// signatures has an element for each signature under way. A signature is the dearest part of a
// handshake: without a bound, a flood of handshakes would take all processors from decisions.
var signatures = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// A signer is a key with a bound on its signatures at once.
type signer struct {
	crypto.Signer
	turns chan struct{} // an element for each signature under way
}

// Sign implements crypto.Signer.
func (s signer) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	return s.Signer.Sign(rand, digest, opts)
}
