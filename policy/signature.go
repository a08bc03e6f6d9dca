package policy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// Bounds on token keys.
const (
	// MinTokenKey is the least number of bytes of a key in Options.TokenKeys.
	MinTokenKey = 32
	// MaxTokenKeys is how many keys Options.TokenKeys has at most.
	MaxTokenKeys = 4
)

// signatureBytes is the length of a signature: half of an HMAC-SHA256, which is 128 bits.
const signatureBytes = 16

// tokenKeys sign tokens. The first signs, and all verify.
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

// text returns a token as signed text.
func (k tokenKeys) text(t token) string {
	b := t.body()
	return base64.RawURLEncoding.EncodeToString(append(b, sign(k[0], b)...))
}

// read returns the token of a text. All errors are ErrToken. It parses only tokens with a valid
// signature.
func (k tokenKeys) read(text string) (t token, err error) {
	// The estimate of a holding's size counts more for its limit than its text has.
	if len(text) > base64.RawURLEncoding.EncodedLen(2*maxTokenBytes) {
		return t, fmt.Errorf("%w; it is of %d bytes", ErrToken, len(text))
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	switch {
	// which base64 skips
	case err != nil || len(b) <= signatureBytes || strings.ContainsAny(text, "\r\n"):
		return t, ErrToken
	case b[0] != tokenVersion:
		return t, fmt.Errorf("%w; it is of version %d, accepted: %d", ErrToken, b[0], tokenVersion)
	}
	body, signature := b[:len(b)-signatureBytes], b[len(b)-signatureBytes:]
	for _, key := range k {
		if hmac.Equal(sign(key, body), signature) {
			return parseToken(body)
		}
	}
	return t, fmt.Errorf("%w; its signature is of another key", ErrToken)
}

// sign returns the signature of a token's body.
func sign(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(body) // never fails
	return h.Sum(nil)[:signatureBytes]
}
