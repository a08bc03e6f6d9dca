package replay

import "slices"

const (
	// maxHeld is the most requests of one log that wait to be put in order. When more would, the oldest goes ahead.
	maxHeld = 1 << 22
	// witnesses is how many of the next requests say whether one that is far ahead is out of place.
	witnesses = 64
)

// A request is one line of a log, with its key as a number.
type request struct {
	second int64 // since the Unix epoch
	place  int64 // among requests of the same second: the line's number, or the log's
	client int32
}

func (r request) before(other request) bool {
	return r.second < other.second || r.second == other.second && r.place < other.place
}

// An order puts requests in the order of their time, if they are no more than the window out of it. Requests of one
// second stay in the order in which they came.
//
// Most of a log would be too late if the newest time were that of one wrong line. So a request that is further ahead
// than the window waits until its witnesses came: it is out of place if most of them would be too late after it, and
// the end of a gap in the traffic otherwise.
type order struct {
	window    int64 // seconds
	most      int   // requests held
	misplaced func(r, newest request)
	newest    request // the newest that is not out of place
	floor     int64   // no request before it can be put in its place any more
	begun     bool    // there is a newest
	ended     bool    // no more will come
	waiting   []request
	held      heap
}

// push adds a request. Those that can't be put in their place, this or one that waited, go behind the newest that was
// seen, and misplaced is told of them.
func (o *order) push(r request) {
	if len(o.waiting) == 0 && o.begun && !o.ahead(r) {
		o.place(r)
		return
	}
	o.waiting = append(o.waiting, r)
	o.settle()
}

// end says that no more requests will come.
func (o *order) end() {
	o.ended = true
	o.settle()
}

// settle places the requests that wait, up to one that is ahead and lacks witnesses.
func (o *order) settle() {
	if !o.begun && !o.begin() {
		return
	}
	done := 0
	for ; done < len(o.waiting); done++ {
		r, after := o.waiting[done], o.waiting[done+1:]
		if o.ahead(r) {
			if len(after) < witnesses && !o.ended {
				break
			}
			if !o.contradicted(r, after) {
				o.advance(r)
			}
		}
		o.place(r)
	}
	o.waiting = slices.Delete(o.waiting, 0, done)
}

// begin takes the first request that is not out of place for the newest, once there are witnesses.
func (o *order) begin() bool {
	if len(o.waiting) == 0 || len(o.waiting) <= witnesses && !o.ended {
		return false
	}
	for i, r := range o.waiting {
		if !o.contradicted(r, o.waiting[i+1:]) { // as the last one is
			o.floor = r.second - o.window
			o.advance(r)
			break
		}
	}
	o.begun = true
	return true
}

// ahead reports whether r is too far ahead to be believed without witnesses.
func (o *order) ahead(r request) bool { return r.second > o.newest.second+o.window }

// contradicted reports whether most of the requests after r would be too late if r were the newest. Against the first
// request of all there must be two of them: of two alone, neither is more likely to be wrong.
func (o *order) contradicted(r request, after []request) bool {
	against := 0
	for _, w := range after {
		if w.second < r.second-o.window {
			against++
		}
	}
	return against*2 > len(after) && (o.begun || against > 1)
}

func (o *order) advance(r request) {
	o.newest, o.floor = r, max(o.floor, r.second-o.window)
}

func (o *order) place(r request) {
	switch {
	case r.second < o.floor || o.ahead(r):
		o.misplaced(r, o.newest)
		r.second = o.newest.second
	case r.second > o.newest.second:
		o.advance(r)
	}
	o.held.push(r)
}

// ready reports whether pop has a request that none will come before.
func (o *order) ready() bool {
	n := len(o.held)
	return n > 0 && (o.ended || n >= o.most || o.held[0].second <= o.newest.second-o.window)
}

// pop returns the next request. Call it when ready.
func (o *order) pop() request {
	r := o.held.pop()
	o.floor = max(o.floor, r.second)
	return r
}
