package identity

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Bounds on the names whose beginning Mask shows, in bytes. Half of a shorter name would be
// visible; Encode keeps only the hash of a longer name.
const (
	minMasked   = 16
	shownOfName = 4
)

// Mask returns the form in which logs, statuses and replies show the name of a client, which may be
// a secret such as an API key: the first 8 hexadecimal digits of its SHA-256 after #, and before
// them, of a name of 16 to 128 printable ASCII characters without % , or #, its first 4 characters:
// sk_l…#1f3a9c02. The name "" stays "". A name has one form everywhere, so the form finds the
// client in a list of clients, such as weir clients list. Two clients may share a form, though
// rarely.
func Mask(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	if len(name) < minMasked || len(name) > maxComponent || !plain(name) {
		return digits(sum[:])
	}
	return name[:shownOfName] + "…" + digits(sum[:])
}

// MaskPart returns Mask of the value of a part of a key, as Encode writes parts. The part - (no
// value) stays unchanged.
func MaskPart(part string) string {
	if part == "-" {
		return part
	}
	if text, hashed := strings.CutPrefix(part, "#"); hashed {
		if sum, err := base64.RawURLEncoding.DecodeString(text); err == nil && len(sum) == sha256.Size {
			return digits(sum)
		}
	}
	return Mask(decode(part))
}

func digits(sum []byte) string { return "#" + hex.EncodeToString(sum[:4]) }

// decode is the inverse of Encode for parts without a hash.
func decode(part string) string {
	if !strings.Contains(part, "%") {
		return part
	}
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] == '%' && i+2 < len(part) {
			if c, err := hex.DecodeString(part[i+1 : i+3]); err == nil {
				b.WriteByte(c[0])
				i += 2
				continue
			}
		}
		b.WriteByte(part[i])
	}
	return b.String()
}
