package train

import (
	"sync"
	"sync/atomic"
)

// pieceSize is the number of elements that a goroutine works on at a time: few enough to share well, and enough that
// taking the next piece costs nothing.
const pieceSize = 1 << 16

// piece is a range of what a parameter has: elements, or rows.
type piece struct{ param, from, to int }

// cut adds the pieces of a parameter that has n elements or rows, size of them in a piece.
func cut(all []piece, param, n, size int) []piece {
	for from := 0; from < n; from += size {
		all = append(all, piece{param, from, min(from+size, n)})
	}
	return all
}

// share has goroutines call f with the numbers from 0 to n-1, each once, until none is left. With one thread all calls
// are the caller's own.
func share(threads, n int, f func(thread, i int)) {
	if threads = min(threads, n); threads <= 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for thread := range threads {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				f(thread, i)
			}
		})
	}
	wg.Wait()
}
