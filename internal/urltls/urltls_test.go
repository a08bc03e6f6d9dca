package urltls_test

import (
	"os"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testcert"
	"github.com/weirlimit/weir/internal/urltls"
)

// The certificate of a client is that of its files at each connection, or else the one before.
func TestCertificatesAreReadAgain(t *testing.T) {
	a := testcert.New(t)
	pair := a.Issue(t, "first")
	var p urltls.Parameters
	for name, value := range map[string]string{"cert": pair.Cert, "key": pair.Key, "ca": a.File} {
		if err := p.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	config, err := p.Config()
	if err != nil {
		t.Fatal(err)
	}
	want := func(name string) {
		t.Helper()
		c, err := config.GetClientCertificate(nil)
		if err != nil || c.Leaf.Subject.CommonName != name {
			t.Errorf("the certificate is %v, %v; want %s", c.Leaf.Subject, err, name)
		}
	}
	want("first")
	a.Replace(t, pair, "second", time.Now().Add(time.Hour))
	want("second")
	if err := os.Remove(pair.Key); err != nil {
		t.Fatal(err)
	}
	want("second")
}
