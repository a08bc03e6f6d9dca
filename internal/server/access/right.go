package access

import (
	"slices"
	"strings"
)

// A Right is a group of verbs, or a set of such groups.
type Right uint8

// The rights. A user without a right may not use its verbs.
const (
	// Take covers takes, reservations, leases and peeks, of limits that requests name.
	Take Right = 1 << iota
	// Check covers checks by policies, and the settlement of their tokens.
	Check
	// Refund covers refunds, resets and cancellations.
	Refund
	// Admin covers metrics, status, explain, profiles and the list of connections.
	Admin

	// None is the right of verbs that every user may use.
	None Right = 0
	// All are all rights.
	All = Take | Check | Refund | Admin
)

// rightNames are the words of the rights, in the order of the bits.
var rightNames = [...]string{"take", "check", "refund", "admin"}

// Rights is the list of the accepted rights.
const Rights = "take, check, refund, admin"

// String returns the word of the right.
func (r Right) String() string {
	var words []string
	for i, word := range rightNames {
		if r&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// ParseRight returns the right of a word, or false.
func ParseRight(word string) (Right, bool) {
	i := slices.Index(rightNames[:], word)
	return 1 << max(i, 0), i >= 0
}
