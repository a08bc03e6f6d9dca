package algorithm

// alike reports whether two limits count alike but for the number, so that what one inherits of the other is exact. That one is slower is not
// enough: parts of units, rounded up at each change, would keep limits that change to and fro from ever giving one back.
func (p *Program) alike(q *Program) bool {
	switch m := p.machine.(type) {
	case linear:
		other, ok := q.machine.(linear)
		return ok && m.step == other.step && m.unit == other.unit
	case calendar:
		other, ok := q.machine.(calendar)
		return ok && m.sameGrid(other)
	case fixedWindow, quotaReset, slidingLog, concurrent, slidingBuckets:
		a, b := p.limit, q.limit
		return a.Algorithm == b.Algorithm && a.Period == b.Period && a.Cells == b.Cells
	}
	return false
}

// covers reports whether a state of p will always have as many units used as a former has, so that the former need not be kept: they count alike, p's has as
// many used now, and what is admitted is charged to both. Such a change leaves an account plain, with which stores are quick.
func (p *Program) covers(state []int64, f Former, now int64) bool {
	if f.Missed > 0 || !p.alike(f.Program) {
		return false
	}
	_, mine := p.machine.take(state, 0, now)
	_, former := f.Program.machine.take(f.State, 0, now)
	if m, ok := f.Program.machine.(concurrent); ok && int64(former.ResetAfter) > m.width {
		return false // a plain account has no leases that are longer than its limit's
	}
	return p.capacity-mine.Remaining >= f.Program.capacity-former.Remaining && mine.ResetAfter >= former.ResetAfter
}
