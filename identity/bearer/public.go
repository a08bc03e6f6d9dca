package bearer

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"

	"github.com/golang-jwt/jwt/v5"
)

// known reports whether a key would be a shared secret, and can't be one: it is empty, or is a public key as one is published.
func known(key jwt.VerificationKey) bool {
	secret, ok := key.([]byte)
	if !ok {
		return false
	}
	text := bytes.TrimSpace(secret)
	return len(text) == 0 || bytes.Contains(text, []byte("-----BEGIN ")) || publicDER(secret) || publicBase64(text) || publicJWK(text)
}

// publicDER reports whether a secret is a public key, or a certificate, by its bytes. It need be of no algorithm that is known here.
func publicDER(secret []byte) bool {
	if len(secret) == 0 || secret[0] != 0x30 { // all of them are a SEQUENCE: most secrets need not be looked at
		return false
	}
	var key struct {
		Algorithm pkix.AlgorithmIdentifier
		Bits      asn1.BitString
	}
	if rest, err := asn1.Unmarshal(secret, &key); err == nil && len(rest) == 0 {
		return true
	}
	if _, err := x509.ParsePKCS1PublicKey(secret); err == nil {
		return true
	}
	_, err := x509.ParseCertificate(secret)
	return err == nil
}

// publicBase64 is publicDER for what is written in base64, in either alphabet, in lines or in one, with = at its end or without.
func publicBase64(text []byte) bool {
	if text[0] != 'M' { // the first six bits of a SEQUENCE
		return false
	}
	plain := bytes.Map(func(c rune) rune {
		switch c {
		case '-':
			return '+'
		case '_':
			return '/'
		case '=', ' ', '\t', '\r', '\n':
			return -1
		}
		return c
	}, text)
	der := make([]byte, base64.RawStdEncoding.DecodedLen(len(plain)))
	n, err := base64.RawStdEncoding.Decode(der, plain)
	return err == nil && publicDER(der[:n])
}

// publicJWK reports whether a secret is a JSON Web Key of a key pair, or a set of keys with one in it.
func publicJWK(text []byte) bool {
	type jwk struct {
		Kty string `json:"kty"`
	}
	var key struct {
		jwk
		Keys []jwk `json:"keys"`
	}
	if text[0] != '{' || json.Unmarshal(text, &key) != nil {
		return false
	}
	for _, k := range append(key.Keys, key.jwk) {
		switch k.Kty {
		case "RSA", "EC", "OKP", "AKP":
			return true
		}
	}
	return false
}
