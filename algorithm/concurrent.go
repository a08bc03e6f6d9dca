package algorithm

// concurrent is a log of leases, each of which can be given back by its end.
//
// State: pairs of (time of the lease, units), oldest first.
type concurrent struct{ slidingLog }

func newConcurrent(l Limit, tick int64) (concurrent, error) {
	log, err := newSlidingLog(l, tick)
	return concurrent{log}, err
}

// renew carries out a Renew.
func (p *Program) renew(state []int64, op Op, now int64) ([]int64, Decision) {
	if op.Cost > 0 && op.Cost <= p.capacity {
		state, _ = p.cancel(state, op.Cost, op.End, now)
	}
	return p.take(state, op.Cost, now)
}
