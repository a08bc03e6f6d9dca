package bounds

import (
	"encoding/binary"
	"math"
	"sort"
)

// states holds, for each state that some pattern leads to, the most units counted on the way there.
type states map[string]int64

// undominated drops states of an exponential limit, which has no end of them. Of two states of one time, the one
// of the lower rate admits whatever the other does, because the next rate never falls as the rate rises (and rounding
// keeps order); so a higher rate is of interest only if more units were counted before.
func undominated(all states) states {
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	rate := func(k string) float64 {
		if k == "" {
			return 0
		}
		return math.Float64frombits(uint64(unpack(k)[1]))
	}
	sort.Slice(keys, func(i, j int) bool { return rate(keys[i]) < rate(keys[j]) })
	kept, most := states{}, map[string]int64{}
	for _, k := range keys {
		last := k[:min(8, len(k))] // the time of the last update
		if best, found := most[last]; !found || all[k] > best {
			kept[k], most[last] = all[k], all[k]
		}
	}
	return kept
}

func (s states) most() (units int64) {
	for _, n := range s {
		units = max(units, n)
	}
	return units
}

func pack(state []int64) string {
	b := make([]byte, 0, 8*len(state))
	for _, word := range state {
		b = binary.BigEndian.AppendUint64(b, uint64(word))
	}
	return string(b)
}

func unpack(key string) []int64 {
	state := make([]int64, 0, len(key)/8)
	for ; key != ""; key = key[8:] {
		state = append(state, int64(binary.BigEndian.Uint64([]byte(key[:8]))))
	}
	return state
}
