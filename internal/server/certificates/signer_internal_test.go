package certificates

import (
	"crypto"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/testcert"
)

// A slowKey signs for a second, and counts its signatures at once.
type slowKey struct {
	crypto.Signer
	now, most, all atomic.Int64
}

func (k *slowKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	if n := k.now.Add(1); n > k.most.Load() {
		k.most.Store(n)
	}
	time.Sleep(time.Second)
	k.now.Add(-1)
	k.all.Add(1)
	return nil, nil
}

// Signatures of many handshakes leave processors to decisions.
func TestSignaturesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, turns := new(slowKey), make(chan struct{}, 2)
		for range 100 {
			go func() { _, _ = signer{key, turns}.Sign(nil, nil, nil) }()
		}
		time.Sleep(time.Hour)
		if key.most.Load() != 2 || key.all.Load() != 100 {
			t.Errorf("%d signatures at once, %d in all", key.most.Load(), key.all.Load())
		}
	})
}

// The key of each loaded certificate is bounded.
func TestLoadedKeysAreSigners(t *testing.T) {
	pair := testcert.New(t).Issue(t, "weir")
	c, err := Load(Paths{Cert: pair.Cert, Key: pair.Key}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	first := c.Config("http/1.1")
	config := first()
	if _, ok := config.Certificates[0].PrivateKey.(signer); !ok {
		t.Errorf("the key is a %T", config.Certificates[0].PrivateKey)
	}
	if again := first(); again != config {
		t.Error("the configuration changes without a change of the files, so session tickets are lost")
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if again := first(); again == config {
		t.Error("after a reload the configuration is the previous one")
	}
}
