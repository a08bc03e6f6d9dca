package certificates

import (
	"crypto"
	"io"
	"runtime"
)

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
