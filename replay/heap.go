package replay

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
