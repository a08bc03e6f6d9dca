package replay

// maxHeld is the most requests of one log that wait to be put in order. When more would, the oldest goes ahead.
const maxHeld = 1 << 22

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
type order struct {
	window int64 // seconds
	most   int   // requests held
	newest int64
	floor  int64 // no request before it can be put in its place any more
	begun  bool
	ended  bool // no more will come
	held   heap
}

// push adds a request. It returns by how many seconds the request came too late to be put in its place, 0 for most;
// a late request goes behind the newest that was seen.
func (o *order) push(r request) (late int64) {
	if !o.begun {
		o.begun, o.newest, o.floor = true, r.second, r.second-o.window
	}
	o.newest = max(o.newest, r.second)
	o.floor = max(o.floor, o.newest-o.window)
	if r.second < o.floor {
		late, r.second = o.newest-r.second, o.newest
	}
	o.held.push(r)
	return late
}

// ready reports whether pop has a request that none will come before.
func (o *order) ready() bool {
	n := len(o.held)
	return n > 0 && (o.ended || n >= o.most || o.held[0].second <= o.newest-o.window)
}

// pop returns the next request. Call it when ready.
func (o *order) pop() request {
	r := o.held.pop()
	o.floor = max(o.floor, r.second)
	return r
}

// A heap has the first of its requests at index 0. (container/heap would allocate for each.)
type heap []request

func (h *heap) push(r request) {
	a := append(*h, r)
	*h = a
	for i := len(a) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a[i].before(a[parent]) {
			return
		}
		a[i], a[parent] = a[parent], a[i]
		i = parent
	}
}

func (h *heap) pop() request {
	a := *h
	first, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	*h = a
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < last && a[child+1].before(a[child]) {
			child++
		}
		if child >= last || !a[child].before(a[i]) {
			return first
		}
		a[i], a[child] = a[child], a[i]
		i = child
	}
}
