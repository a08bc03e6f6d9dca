package redis_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store/redis"
)

// rights is the rule that docs/redis.md shows for a user of the default prefix.
const rights = "resetkeys ~weir:1:* resetchannels -@all +evalsha +eval +time +get +set +unlink" +
	" +rpush +rpop +llen +lindex +lrange +lset +ltrim +pexpire +pexpireat"

// A user with exactly the rights that the documentation lists can do everything, and one that lacks any of them is told so
// when the store is opened.
func TestRights(t *testing.T) {
	server := testengine.Redis(t)
	c := raw(t, server.Addr())
	user := append([]string{"ACL", "SETUSER", "weir", "on", ">p@ss/word"}, strings.Fields(rights)...)
	ask(t, c, user...)
	url := "redis://weir:p%40ss%2Fword@" + server.Addr()
	s := openURL(t, url, redis.Options{})
	for _, text := range limits {
		b := bind(t, s, "", text)
		for _, op := range []algorithm.Op{
			{Cost: 1}, {Cost: 1}, {Kind: algorithm.TakeUpTo, Cost: 5}, {Kind: algorithm.Refund, Cost: 1},
			{Kind: algorithm.Cancel, Cost: 1, End: time.Now().UnixNano() / 1000 * 1000}, {}, {Kind: algorithm.Reset},
		} {
			do(t, b, "key", op)
			do(t, bind(t, s, "named", text), "key", op)
		}
	}
	for _, b := range named(t, s, "changes", "10/1h", "sliding-log 5/1h", "sliding-buckets 5/1h", "10/month", "concurrent 3 lease=1h") {
		for _, op := range []algorithm.Op{
			{Cost: 1}, {Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: int64(time.Hour)}, {Kind: algorithm.Commit, ID: 1}, {Kind: algorithm.Renew, Cost: 1},
		} {
			do(t, b, "key", op)
		}
	}
	ask(t, c, "ACL", "SETUSER", "weir", "+select")
	openURL(t, url+"/2", redis.Options{})
	ask(t, c, "ACL", "SETUSER", "weir", "-select")
	if _, err := redis.Open(t.Context(), url+"/2", redis.Options{Timeout: patience}); err == nil {
		t.Error("a database was selected without the right")
	}
	takeAll(t, s, part(t, s, "", "1/1h", "a", 1), part(t, s, "", "hybrid 1/1h", "a", 1))
	if _, err := redis.Open(t.Context(), url, redis.Options{Prefix: "other", Timeout: patience}); err == nil || !strings.Contains(err.Error(), "docs/redis.md") {
		t.Error(err)
	}
	for right := range strings.FieldsSeq(rights) {
		command, granted := strings.CutPrefix(right, "+")
		if !granted || command == "eval" { // for a script that is not known, only
			continue
		}
		ask(t, c, "ACL", "SETUSER", "weir", "-"+command)
		if _, err := redis.Open(t.Context(), url, redis.Options{Timeout: patience}); err == nil || !strings.Contains(err.Error(), "rights") {
			t.Errorf("without %s: %v", command, err)
		}
		ask(t, c, "ACL", "SETUSER", "weir", right)
	}
	for _, wrong := range []string{"redis://weir:wrong@", "redis://"} {
		ask(t, c, "ACL", "SETUSER", "default", "off")
		if _, err := redis.Open(t.Context(), wrong+server.Addr(), redis.Options{Timeout: patience}); err == nil || strings.Contains(err.Error(), "wrong@") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	ask(t, c, "ACL", "SETUSER", "default", "on")
	docs, err := os.ReadFile("../../docs/redis.md")
	if err != nil || !strings.Contains(string(docs), rights) {
		t.Errorf("docs/redis.md does not show the rights %q, %v", rights, err)
	}
}

func TestPasswordAndDatabase(t *testing.T) {
	server := testengine.Redis(t, "--requirepass", "secret")
	if _, err := redis.Open(t.Context(), server.URL(), redis.Options{Timeout: patience}); err == nil {
		t.Error("it opened without a password")
	}
	url := "redis://:secret@" + server.Addr()
	zero, three := openURL(t, url, redis.Options{}), openURL(t, url+"/3?client_name=weir-test", redis.Options{})
	a, b := bind(t, zero, "", "2/1h"), bind(t, three, "", "2/1h")
	take(t, a, "key", 1)
	if v := take(t, b, "key", 1); v.Remaining != 1 {
		t.Errorf("databases share a state: %+v", v)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certificates(t, dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	file := func(name string) string { return filepath.Join(dir, name) }
	testengine.Redis(t, "--tls-port", strconv.Itoa(port), "--tls-ca-cert-file", file("ca.pem"),
		"--tls-cert-file", file("server.pem"), "--tls-key-file", file("server.key"), "--tls-auth-clients", "yes")
	url := "rediss://127.0.0.1:" + strconv.Itoa(port)
	identity := "&cert=" + file("client.pem") + "&key=" + file("client.key")
	for query, ok := range map[string]bool{
		"?ca=" + file("ca.pem") + identity:                            true,
		"?insecure_skip_verify=true" + identity:                       true,
		"?ca=" + file("ca.pem") + identity + "&server_name=127.0.0.1": true,
		"?ca=" + file("ca.pem") + identity + "&server_name=elsewhere": false,
		"?ca=" + file("ca.pem"):                                       false,
		"":                                                            false,
	} {
		s, err := redis.Open(t.Context(), url+query, redis.Options{Timeout: patience})
		if (err == nil) != ok {
			t.Errorf("%s: %v", query, err)
		}
		if err == nil {
			take(t, bind(t, s, "", "1/1h"), query, 1)
			s.Close()
		}
	}
}

// certificates writes an authority's, and a server's and a client's that it signed.
func certificates(t *testing.T, dir string) {
	t.Helper()
	write := func(name, kind string, der []byte) {
		var b bytes.Buffer
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i, name := range []string{"ca", "server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
		}
		if i == 0 {
			c.IsCA, c.KeyUsage, c.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
			authority, signer = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, authority, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		write(name+".pem", "CERTIFICATE", der)
		if der, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			t.Fatal(err)
		}
		write(name+".key", "PRIVATE KEY", der)
	}
}
