package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"hash/maphash"
	"sync/atomic"
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
