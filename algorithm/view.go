package algorithm

import "slices"

// View returns a copy of the state that p finds in the account at now, for programs that plan. What is reserved is used in it, and so is
// what is owed, as far as there is room for it.
func (a Account) View(p *Program, now int64) []int64 {
	a.State = slices.Clone(a.State)
	if a.Plain(p) {
		return a.State
	}
	return a.open(p, now).state
}
