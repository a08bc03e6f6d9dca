package bearer_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"pgregory.net/rapid"

	"github.com/weirlimit/weir/identity/bearer"
)

// published are forms in which a public key is handed around, by their names.
func published(t testing.TB) map[string]string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &curve.PublicKey, curve)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"JWK of RSA":     `{"e":"AQAB","kty":"RSA","n":"` + base64.RawURLEncoding.EncodeToString(private.N.Bytes()) + `"}`,
		"JWK of a curve": "\n{\"crv\": \"P-256\", \"kty\": \"EC\", \"x\": \"\", \"y\": \"\"}\n",
		"JWK of Edwards": `{"kty":"OKP","crv":"Ed25519","x":"` + base64.RawURLEncoding.EncodeToString(edwards) + `"}`,
		"a set of keys":  `{"keys":[{"kty":"oct","k":"c2VjcmV0"},{"kty":"RSA","n":"","e":"AQAB"}]}`,
		"nothing":        "",
		"spaces":         " \r\n",
	}
	ders := map[string][]byte{"PKCS1": x509.MarshalPKCS1PublicKey(&private.PublicKey), "certificate": certificate}
	for name, key := range map[string]crypto.PublicKey{"RSA": &private.PublicKey, "P-256": &curve.PublicKey, "Ed25519": edwards} {
		if ders[name], err = x509.MarshalPKIXPublicKey(key); err != nil {
			t.Fatal(err)
		}
	}
	ders["secp256k1"] = bytes.Replace(ders["P-256"], []byte("\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"), []byte("\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x0a"), 1) // any curve that crypto/x509 has not
	for name, der := range ders {
		text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		lines := strings.Split(text, "\n")
		all[name+" in DER"] = string(der)
		all[name+" in PEM"] = text
		all[name+" in PEM without its frame"] = strings.Join(lines[1:len(lines)-2], "\r\n") + "\r\n"
		all[name+" in base64"] = base64.StdEncoding.EncodeToString(der)
		all[name+" in base64 of URLs"] = base64.RawURLEncoding.EncodeToString(der)
	}
	return all
}

// Whoever knows the public key of an issuer can sign with it, where it is given for a shared secret.
func TestPublicKeysAreNoSecrets(t *testing.T) {
	for name, key := range published(t) {
		token := sign(t, jwt.SigningMethodHS256, []byte(key), jwt.MapClaims{"sub": "mallory"})
		for _, set := range []any{[]byte(key), jwt.VerificationKeySet{Keys: []jwt.VerificationKey{secret, []byte(key)}}} {
			source := must(t, bearer.Options{Methods: []string{"HS256"}, Key: func(*jwt.Token) (any, error) { return set, nil }})
			if got := source.Value(with("Bearer " + token)); got != "" {
				t.Errorf("%s signs for %q", name, got)
			}
		}
	}
}

// Secrets of any bytes are secrets, and those that look a little like public keys.
func TestSecretsAreSecrets(t *testing.T) {
	check := func(t interface{ Errorf(string, ...any) }, tb testing.TB, key []byte) {
		source := must(tb, bearer.Options{Methods: []string{"HS256"}, Key: func(*jwt.Token) (any, error) { return key, nil }})
		if got := source.Value(with("Bearer " + sign(tb, jwt.SigningMethodHS256, key, jwt.MapClaims{"sub": "alice"}))); got != "alice" {
			t.Errorf("the secret %q signs for %q", key, got)
		}
	}
	der, err := base64.StdEncoding.DecodeString("MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=")
	if err != nil {
		t.Fatal(err)
	}
	oct, err := json.Marshal(map[string]string{"kty": "oct", "k": "c2VjcmV0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"M", "{", "{}", "0", "\x30", "\x30\x00", "MCow", string(der[:len(der)-1]), string(der) + "x", "MCowBQYDK2VwAyEA!", string(oct), `{"kty":1}`, `"kty":"RSA"`, "M\x00", "RSA"} {
		check(t, t, []byte(key))
	}
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(rt, "key")
		first := rapid.SampledFrom([]byte{key[0], 0x30, 'M', '{'}).Draw(rt, "first")
		key[0] = first
		if len(bytes.TrimSpace(key)) > 0 {
			check(rt, t, key)
		}
	})
}
