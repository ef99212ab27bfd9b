package train

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gorgonia.org/gorgonia"
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

// firstBad is the number of the first parameter that an update made infinite or NaN, whichever goroutine finds it, or the
// number of parameters.
type firstBad struct{ atomic.Int64 }

// noneBad is where an update of parameters starts.
func noneBad(params []gorgonia.ValueGrad) *firstBad {
	b := &firstBad{}
	b.Store(int64(len(params)))
	return b
}

// note says that a parameter is not finite.
func (b *firstBad) note(param int) {
	for was := b.Load(); int64(param) < was && !b.CompareAndSwap(was, int64(param)); was = b.Load() {
	}
}

// err names the first such parameter; it is nil when there is none.
func (b *firstBad) err(solver string, params []gorgonia.ValueGrad) error {
	if i := int(b.Load()); i < len(params) {
		return fmt.Errorf("%s: %s: %w", solver, parameterName(params[i], i), errWeightNotFinite)
	}
	return nil
}
