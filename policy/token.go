package policy

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
)

// ErrToken is the error for a text without the form of a token of this version, or that no key of
// the Set encrypted (Options.TokenKeys).
var ErrToken = errors.New("weir: this is no token; accepted: the one of a decision, as it was given")

// ErrSettled is the error for a settled or expired token.
var ErrSettled = errors.New("weir: nothing is held under the token any more: it was settled, or its time is over")

// errReservationOver is of a token under which there were leases, and no reservation.
var errReservationOver = fmt.Errorf("%w; its leases are given back, and no cost was charged now", ErrSettled)

const tokenVersion = 2

// A token lists the holdings of a request. As text it is:
//
//	version, salt, and encrypted: reservation (varint), its life, number of holdings, each as flags, name, limit, key, units, end
//
// in base64url, where numbers are uvarints and texts have their length before them. A token works
// with every Set over the store with the key.
type token struct {
	id   int64 // of the reservations
	life int64 // of each reservation, from its start or renewal, in nanoseconds
	held []decide.Holding
}

// body returns the part of the token that is encrypted.
func (t token) body() []byte {
	b := binary.AppendVarint(nil, t.id)
	b = binary.AppendUvarint(b, uint64(t.life))
	b = binary.AppendUvarint(b, uint64(len(t.held)))
	for i := range t.held {
		h := &t.held[i]
		b = append(b, flags(h.Lease, h.Local, h.Quiet, h.Stated))
		for _, text := range []string{h.Name, h.Limit.String(), h.Key} {
			b = binary.AppendUvarint(b, uint64(len(text)))
			b = append(b, text...)
		}
		b = binary.AppendUvarint(b, uint64(h.Units))
		b = binary.AppendVarint(b, h.End)
	}
	return b
}

func flags(set ...bool) (b byte) {
	for i, is := range set {
		if is {
			b |= 1 << i
		}
	}
	return b
}

// parseToken reads the body of a token. All errors are ErrToken.
func parseToken(b []byte) (t token, err error) {
	r := tokenReader{b: b}
	t.id, t.life = r.varint(), int64(r.uvarint())
	n := r.uvarint()
	if n > decide.MaxHoldings {
		return token{}, ErrToken
	}
	for ; n > 0 && r.err == nil; n-- {
		t.held = append(t.held, r.holding())
	}
	if r.err != nil || len(r.b) > 0 || len(t.held) == 0 || t.life < 0 || t.life > int64(maxHold) {
		return token{}, ErrToken
	}
	return t, nil
}

// A tokenReader reads a token's body. After an error it reads zeros.
type tokenReader struct {
	b   []byte
	err error
}

func (r *tokenReader) holding() (h decide.Holding) {
	f := r.bytes(1)[0]
	h.Lease, h.Local, h.Quiet, h.Stated = f&1 != 0, f&2 != 0, f&4 != 0, f&8 != 0
	h.Name = r.text()
	limit := r.text()
	h.Key = r.text()
	units := r.uvarint()
	h.Units, h.End = int64(units), r.varint()
	if r.err != nil {
		return h
	}
	var err error
	if h.Limit, err = weir.ParseLimit(limit); err != nil || h.Limit.String() != limit || units > MaxCost || h.Name == "" || f >= 16 {
		r.err = ErrToken
	}
	return h
}

func (r *tokenReader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.err = ErrToken
		return make([]byte, 1)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *tokenReader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.err = ErrToken
		return ""
	}
	return string(r.bytes(int(n)))
}

func (r *tokenReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.err = nil, ErrToken
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *tokenReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.err = nil, ErrToken
		return 0
	}
	r.b = r.b[n:]
	return v
}

// newID returns a reservation's ID, which is not 0.
func newID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) | 1)
}
