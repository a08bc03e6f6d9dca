package algorithm

// Interval returns how long a limit of the linear family takes to get back one unit, as step/unit ticks in lowest terms, or in
// 1/SharedUnit ns for a program of [CompileShared]. For a store that has an engine take the step: its state is whole
// ticks and, where unit is not 1, a remainder in 1/unit ticks. ok is false for other algorithms.
func (p *Program) Interval() (step, unit int64, ok bool) {
	switch m := p.machine.(type) {
	case linear:
		return m.step, m.unit, true
	case shared:
		return m.step, m.unit, true
	}
	return 0, 0, false
}
