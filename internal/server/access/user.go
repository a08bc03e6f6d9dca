package access

// A User is an entry of a users file. It does not change, and may be used by many goroutines at
// once.
type User struct {
	name    string
	on      bool
	rights  Right
	secrets []*secret
	certs   []Identity

	names, policies, keys patterns
}

// Name returns the name of the user.
func (u *User) Name() string { return u.name }

// May reports whether the user may use a verb of the right on a key. name is the policy for Check,
// and the name of the limiter for Take and Refund, empty for a limit without a name. Admin and None
// have neither a name nor a key. A nil User may do nothing.
func (u *User) May(right Right, name, key string) bool {
	switch {
	case u == nil || u.rights&right != right:
		return false
	case right == Take || right == Refund:
		return u.names.match(name) && u.keys.match(key)
	case right == Check:
		return u.policies.match(name) && u.keys.match(key)
	}
	return true
}

// Has reports whether the user has a right on any name and key.
func (u *User) Has(right Right) bool { return u != nil && u.rights&right == right }
