package algorithm_test

import "math/big"

// A journal is everything that was ever admitted; the window models add up what counts, from the start, each time.
type journal []struct{ at, cost int64 }

func (j *journal) note(at, cost int64) { *j = append(*j, struct{ at, cost int64 }{at, cost}) }

// sum adds the costs of the entries that count.
func (j *journal) sum(counts func(at int64) bool) *big.Int {
	total := new(big.Int)
	for _, e := range *j {
		if counts(e.at) {
			total.Add(total, big.NewInt(e.cost))
		}
	}
	return total
}

// newest returns the greatest of at and the entries' own.
func (j *journal) newest(at int64) int64 {
	for _, e := range *j {
		at = max(at, e.at)
	}
	return at
}

func fitsWith(used *big.Int, cost int64, count *big.Int) answer {
	return is(new(big.Int).Add(used, big.NewInt(cost)).Cmp(count) <= 0)
}

// alignedWindow is the fixed window. Its journal holds window indexes.
type alignedWindow struct {
	count *big.Int
	width int64
	log   journal
}

func (m *alignedWindow) index(now int64) int64 { return m.log.newest(floor(now, 1, m.width)) }
func (m *alignedWindow) used(now int64) *big.Int {
	current := m.index(now)
	return m.log.sum(func(at int64) bool { return at == current })
}
func (m *alignedWindow) fits(now, cost int64) answer { return fitsWith(m.used(now), cost, m.count) }
func (m *alignedWindow) fresh(now int64) answer      { return is(m.used(now).Sign() == 0) }
func (m *alignedWindow) admit(now, cost int64)       { m.log.note(m.index(now), cost) }

// firstUseWindow is the quota reset: it replays the journal to find where the last window starts.
type firstUseWindow struct {
	count *big.Int
	width int64
	log   journal
}

// open returns the units used in the window that holds now, and whether there is one.
func (m *firstUseWindow) open(now int64) (used *big.Int, open bool) {
	var end *big.Int
	for _, e := range m.log {
		if at := big.NewInt(e.at); end == nil || end.Cmp(at) <= 0 {
			end, used = at.Add(at, big.NewInt(m.width)), new(big.Int)
		}
		used.Add(used, big.NewInt(e.cost))
	}
	if end == nil || end.Cmp(big.NewInt(now)) <= 0 {
		return new(big.Int), false
	}
	return used, true
}

func (m *firstUseWindow) fits(now, cost int64) answer {
	used, _ := m.open(now)
	return fitsWith(used, cost, m.count)
}
func (m *firstUseWindow) fresh(now int64) answer {
	_, open := m.open(now)
	return is(!open)
}
func (m *firstUseWindow) admit(now, cost int64) { m.log.note(now, cost) }

// unitLog is the sliding log: what was admitted in (now−width, now]. A hit in the past is noted at the newest time.
type unitLog struct {
	count *big.Int
	width int64
	log   journal
}

func (m *unitLog) used(now int64) *big.Int {
	return m.log.sum(func(at int64) bool { return less(between(at, m.log.newest(now)), rat(m.width)) })
}
func (m *unitLog) fits(now, cost int64) answer { return fitsWith(m.used(now), cost, m.count) }
func (m *unitLog) fresh(now int64) answer      { return is(m.used(now).Sign() == 0) }
func (m *unitLog) admit(now, cost int64)       { m.log.note(m.log.newest(now), cost) }

// weightedWindow is the sliding window counter; its journal holds window indexes.
type weightedWindow struct {
	count *big.Rat
	width int64
	log   journal
}

func (m *weightedWindow) index(now int64) int64 { return m.log.newest(floor(now, 1, m.width)) }

// estimate is previous·(width−elapsed)/width + current; a time before the newest window counts as its start.
func (m *weightedWindow) estimate(now int64) *big.Rat {
	index := m.index(now)
	units := func(i int64) *big.Rat {
		return new(big.Rat).SetInt(m.log.sum(func(at int64) bool { return at == i }))
	}
	width := rat(m.width)
	elapsed := greater(rat(0), sub(rat(now), mul(rat(index), width)))
	share := new(big.Rat).Quo(sub(width, elapsed), width)
	return add(mul(units(index-1), share), units(index))
}

func (m *weightedWindow) fits(now, cost int64) answer {
	return is(atMost(add(m.estimate(now), rat(cost)), m.count))
}
func (m *weightedWindow) fresh(now int64) answer { return is(m.estimate(now).Sign() == 0) }
func (m *weightedWindow) admit(now, cost int64)  { m.log.note(m.index(now), cost) }

// cellWindow is the sliding buckets: the newest cell and as many before it as make a window. Its journal holds cell indexes.
type cellWindow struct {
	count        *big.Int
	width, cells int64
	log          journal
}

func (m *cellWindow) cell(now int64) int64 { return m.log.newest(floor(now, m.cells, m.width)) }
func (m *cellWindow) used(now int64) *big.Int {
	oldest := m.cell(now) - m.cells
	return m.log.sum(func(at int64) bool { return at >= oldest })
}
func (m *cellWindow) fits(now, cost int64) answer { return fitsWith(m.used(now), cost, m.count) }
func (m *cellWindow) fresh(now int64) answer      { return is(m.used(now).Sign() == 0) }
func (m *cellWindow) admit(now, cost int64)       { m.log.note(m.cell(now), cost) }
