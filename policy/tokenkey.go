package policy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/weirlimit/weir/internal/decide"
)

// Bounds on token keys.
const (
	// MinTokenKey is the least number of bytes of a key in Options.TokenKeys.
	MinTokenKey = 32
	// MaxTokenKeys is how many keys Options.TokenKeys has at most.
	MaxTokenKeys = 4
)

// saltBytes is the length of the random salt of a token.
const saltBytes = 16

// tokenKeys encrypt tokens, so that a token shows no client's name, and nobody without a key makes
// one. The first key encrypts, and all decrypt.
type tokenKeys [][]byte

// newTokenKeys returns copies of the keys, or a random key if there are none.
func newTokenKeys(given [][]byte) (keys tokenKeys, err error) {
	if len(given) > MaxTokenKeys {
		return nil, fmt.Errorf("weir: TokenKeys has %d keys; accepted: up to %d", len(given), MaxTokenKeys)
	}
	for i, key := range given {
		if len(key) < MinTokenKey {
			return nil, fmt.Errorf("weir: TokenKeys[%d] is of %d bytes; accepted: %d or more, at random", i, len(key), MinTokenKey)
		}
		keys = append(keys, slices.Clone(key))
	}
	if keys == nil {
		key := make([]byte, MinTokenKey)
		_, _ = rand.Read(key) // never fails
		keys = tokenKeys{key}
	}
	return keys, nil
}

// text returns a token as encrypted text.
func (k tokenKeys) text(t token) string {
	return base64.RawURLEncoding.EncodeToString(seal(k[0], t.body()))
}

// read returns the token of a text. All errors are ErrToken. It parses only tokens that one of the
// keys encrypted.
func (k tokenKeys) read(text string) (t token, err error) {
	// The estimate of a holding's size counts more for its limit than its text has.
	if len(text) > base64.RawURLEncoding.EncodedLen(2*decide.MaxHoldingBytes) {
		return t, fmt.Errorf("%w; it is of %d bytes", ErrToken, len(text))
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || len(b) <= 1+saltBytes || strings.ContainsAny(text, "\r\n"): // which base64 skips
		return t, ErrToken
	case b[0] != tokenVersion:
		return t, fmt.Errorf("%w; it is of version %d, accepted: %d", ErrToken, b[0], tokenVersion)
	}
	for _, key := range k {
		if body, ok := open(key, b); ok {
			return parseToken(body)
		}
	}
	return t, fmt.Errorf("%w; it was altered, or encrypted with another key", ErrToken)
}

// seal returns the version, a random salt, and the body encrypted under both.
func seal(key, body []byte) []byte {
	head := make([]byte, 1+saltBytes, 1+saltBytes+len(body)+16)
	head[0] = tokenVersion
	_, _ = rand.Read(head[1:]) // never fails
	gcm, nonce := tokenCipher(key, head)
	return gcm.Seal(head, nonce, body, head)
}

// open returns the body of a sealed one, unless another key sealed it or it was altered.
func open(key, sealed []byte) (body []byte, ok bool) {
	head := sealed[:1+saltBytes]
	gcm, nonce := tokenCipher(key, head)
	body, err := gcm.Open(nil, nonce, sealed[len(head):], head)
	return body, err == nil
}

// tokenCipher returns AES-256-GCM under a key and a nonce for one token, which HKDF derives from the
// salt. So any number of tokens may be made with one key.
func tokenCipher(key, head []byte) (gcm cipher.AEAD, nonce []byte) {
	const keyBytes, nonceBytes = 32, 12
	derived, err := hkdf.Key(sha256.New, key, head[1:], "weir token", keyBytes+nonceBytes)
	if err != nil {
		panic(err) // only for lengths out of range, and these are constants
	}
	block, err := aes.NewCipher(derived[:keyBytes])
	if err != nil {
		panic(err)
	}
	if gcm, err = cipher.NewGCM(block); err != nil {
		panic(err)
	}
	return gcm, derived[keyBytes:]
}
