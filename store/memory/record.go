package memory

import (
	"unsafe"

	"github.com/weirlimit/weir/algorithm"
)

const (
	wordBytes  = 8
	extraWords = int(unsafe.Sizeof(algorithm.Extra{})) / wordBytes
	holdWords  = int(unsafe.Sizeof(algorithm.Hold{})) / wordBytes
)

// wordsOf returns how many words of memory an Extra takes.
func wordsOf(x *algorithm.Extra) int {
	if x == nil {
		return 0
	}
	return extraWords + holdWords*cap(x.Holds)
}

// try returns the account after an operation on a, which stays unchanged. The new state is in
// scratch memory, which the next try overwrites. The caller holds the shard's mutex.
func (h *stateShard) try(a algorithm.Account, p *algorithm.Program, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
	had := cap(h.scratch)
	a.State = append(h.scratch[:0], a.State...)
	a, r := a.Apply(p, op, now)
	h.scratch = nil
	if cap(a.State) <= h.table.mostScratch() {
		h.scratch = a.State[:0]
	}
	if more := cap(h.scratch) - had; more != 0 {
		h.table.store.room.bytes.Add(wordBytes * int64(more))
	}
	return a, r
}

// mostScratch returns how many words of scratch memory a shard keeps: all of them together at most
// a sixteenth of the store.
func (t *stateTable) mostScratch() int {
	return int(min(mostScratch, t.store.room.maxBytes/(16*stateShards*wordBytes)))
}

// stateWords returns the words of memory beyond the entry for a state of n words. has is the number
// of words that the entry has. A growing state gets room for an eighth more.
func stateWords(n, has int) int {
	switch {
	case n <= shortState:
		return 0
	case n <= has && has <= 2*n:
		return has
	case shortState < has && has < n:
		n += n / 8
	}
	if n <= 16 {
		return (n + 1) &^ 1 // as Go's allocator has it
	}
	return (n + 15) &^ 15
}

// stateMemory returns how many words of memory beyond the entry its state has.
func (e *entry) stateMemory() int {
	if n := cap(e.account.State); n > shortState {
		return n
	}
	return 0
}

// holds reports whether a state is in the entry's memory, from its start on, and uses enough of it.
func (e *entry) holds(state []int64) bool {
	has := e.account.State
	if len(state) == 0 || &state[0] != &has[0] {
		return false
	}
	return cap(has) <= shortState || cap(has) <= 2*len(state) && len(state) > shortState
}

// growth returns how many words of memory more the entry takes with another account.
func (e *entry) growth(a algorithm.Account) int {
	return stateWords(len(a.State), e.stateMemory()) + wordsOf(a.Extra) - int(e.words)
}

// set sets an entry's account to a copy of a.
func (e *entry) set(a algorithm.Account) {
	has := e.stateMemory()
	words := stateWords(len(a.State), has)
	state := e.account.State
	switch {
	case words == 0:
		state = e.short[:0]
	case words != has:
		state = make([]int64, 0, words)
	}
	e.words = int32(words + wordsOf(a.Extra))
	a.State = append(state[:0], a.State...)
	e.account = a
}
