package bpe

// heap is a binary heap; the zero value with a less function is empty and ready. (container/heap boxes every element.)
type heap[T any] struct {
	less  func(a, b *T) bool
	items []T
}

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(&h.items[i], &h.items[parent]) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// pop removes and returns the least element; ok is false when there is none.
func (h *heap[T]) pop() (top T, ok bool) {
	n := len(h.items)
	if n == 0 {
		return top, false
	}
	top = h.items[0]
	var none T
	h.items[0], h.items[n-1] = h.items[n-1], none
	h.items = h.items[:n-1]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n-1; child++ {
			if h.less(&h.items[child], &h.items[least]) {
				least = child
			}
		}
		if least == i {
			return top, true
		}
		h.items[i], h.items[least] = h.items[least], h.items[i]
		i = least
	}
}
