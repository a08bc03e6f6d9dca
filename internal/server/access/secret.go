package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// A secret is the hash of a secret of a user. Once a client has proved to have the secret, it also
// has a digest that is fast to compute.
type secret struct {
	hash     hash
	verified atomic.Pointer[digest]
}

// A digest is a hash of a name and a secret under a key that only this process has.
type digest [sha256.Size]byte

// digest returns the digest of a name and a secret.
func (u *Users) digest(name, secret string) digest {
	var room [2*sha256.Size + maxName + maxSecret]byte
	b := append(room[:0], u.key[:]...)
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = append(b, secret...)
	return sha256.Sum256(b)
}

// is reports whether a verified secret has the digest.
func (s *secret) is(d *digest) bool {
	known := s.verified.Load()
	return known != nil && subtle.ConstantTimeCompare(known[:], d[:]) == 1
}

// secret returns the secret with the hash, or nil.
func (u *User) secret(text string) *secret {
	if u == nil {
		return nil
	}
	for _, s := range u.secrets {
		if s.hash.text == text {
			return s
		}
	}
	return nil
}

// decoySeed chooses decoys.
var decoySeed = maphash.MakeSeed()

// secretsOf returns the user and the secrets against which to verify a login: for a user who may not
// log in with a secret, those of another user, always the same for a name, and no user. So the time
// of a refusal does not depend on whether a name is known.
func (t *Table) secretsOf(name string) (*User, []*secret) {
	u := t.users[name]
	switch {
	case u != nil && u.on && len(u.secrets) > 0:
		return u, u.secrets
	case len(t.decoys) == 0:
		return nil, nil
	}
	return nil, t.decoys[maphash.String(decoySeed, name)%uint64(len(t.decoys))].secrets
}

// Bounds on the cost of one verification, and on its strength.
const (
	minMemory, maxMemory = 7 << 10, 256 << 10 // KiB, of argon2id
	maxPasses            = 16
	maxWork              = 1 << 20 // KiB times passes
	maxThreads           = 4
	minSalt, maxSalt     = 8, 64  // bytes
	minSum, maxSum       = 16, 64 // bytes
	minCost, maxCost     = 10, 14 // of bcrypt

	// maxSecret is the most bytes of a secret, and maxBcrypt of a secret under bcrypt, which ignores
	// further bytes.
	maxSecret, maxBcrypt = 256, 72
)

// The parameters of Hash: 19 MiB and two passes, as OWASP recommends.
const hashMemory, hashPasses, hashThreads, hashSalt, hashSum = 19 << 10, 2, 1, 16, 32

// HashAccepted describes the hashes of secrets.
var HashAccepted = fmt.Sprintf("#$argon2id$v=19$m=…,t=…,p=…$salt$hash with m of %d to %d KiB, p of 1 to %d, and m times t up to %d; "+
	"or #$2b$cost$… of bcrypt with a cost of %d to %d", minMemory, maxMemory, maxThreads, maxWork, minCost, maxCost)

// A hash is the hash of a secret in a users file. The parameters of bcrypt are in text.
type hash struct {
	text                    string // as in the file, without #
	memory, passes, threads uint32 // of argon2id; 0 for bcrypt
	salt, sum               []byte
}

// Hash returns the hash of a secret for a users file, with the # before it. The secret must have 1
// to 256 bytes.
func Hash(secret string) (string, error) {
	if err := CheckSecret(secret); err != nil {
		return "", err
	}
	salt := make([]byte, hashSalt)
	_, _ = rand.Read(salt) // never fails
	sum := argon2.IDKey([]byte(secret), salt, hashPasses, hashMemory, hashThreads, hashSum)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("#$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses, hashThreads, encode(salt), encode(sum)), nil
}

// CheckSecret returns an error for a secret that no client can send.
func CheckSecret(secret string) error {
	if n := len(secret); n == 0 || n > maxSecret {
		return fmt.Errorf("access: the secret has %d bytes; accepted: 1 to %d", n, maxSecret)
	}
	return nil
}

// parseHash parses a hash, without #. It reports false for other texts, and for parameters out of
// bounds.
func parseHash(text string) (h hash, ok bool) {
	h.text = text
	if strings.HasPrefix(text, "$2") {
		return h, validBcrypt(text)
	}
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return h, false
	}
	return h, h.setParameters(parts[3]) && h.bounded() && decode(&h.salt, parts[4], minSalt, maxSalt) && decode(&h.sum, parts[5], minSum, maxSum)
}

// setParameters reads m=…,t=…,p=….
func (h *hash) setParameters(text string) bool {
	parameters := strings.Split(text, ",")
	if len(parameters) != 3 {
		return false
	}
	for i, p := range []struct {
		name string
		to   *uint32
	}{{"m=", &h.memory}, {"t=", &h.passes}, {"p=", &h.threads}} {
		digits, found := strings.CutPrefix(parameters[i], p.name)
		n, err := strconv.ParseUint(digits, 10, 32)
		if !found || err != nil || strconv.FormatUint(n, 10) != digits {
			return false
		}
		*p.to = uint32(n)
	}
	return true
}

// bcryptLength is the length of a hash of bcrypt, and bcryptHead of its version and cost.
const bcryptLength, bcryptHead = 60, len("$2b$10$")

func validBcrypt(text string) bool {
	cost, err := bcrypt.Cost([]byte(text))
	return err == nil && len(text) == bcryptLength && cost >= minCost && cost <= maxCost &&
		!strings.ContainsFunc(text[bcryptHead:], func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '.' || r > '9')
		})
}

func (h *hash) bounded() bool {
	return h.memory >= minMemory && h.memory <= maxMemory && h.passes >= 1 && h.passes <= maxPasses &&
		h.threads >= 1 && h.threads <= maxThreads && h.memory*h.passes <= maxWork
}

func decode(to *[]byte, text string, least, most int) bool {
	b, err := base64.RawStdEncoding.Strict().DecodeString(text)
	*to = b
	return err == nil && len(b) >= least && len(b) <= most && !strings.ContainsAny(text, "\r\n")
}

// matches computes the hash of the secret, which is slow on purpose, and compares.
func (h *hash) matches(secret string) bool {
	if h.memory == 0 {
		return len(secret) <= maxBcrypt && bcrypt.CompareHashAndPassword([]byte(h.text), []byte(secret)) == nil
	}
	sum := argon2.IDKey([]byte(secret), h.salt, h.passes, h.memory, uint8(h.threads), uint32(len(h.sum)))
	return subtle.ConstantTimeCompare(sum, h.sum) == 1
}
