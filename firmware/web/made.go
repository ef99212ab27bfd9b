package web

import (
	"context"
	"io"
	"sync"
)

// made is what takes a while to make: it is made once, when somebody first asks for it, and kept.
type made[T any] struct {
	make  func() (T, error)
	once  sync.Once
	done  chan struct{}
	value T
	err   error
}

func newMade[T any](do func() (T, error)) *made[T] {
	return &made[T]{make: do, done: make(chan struct{})}
}

// start begins to make it, unless that was begun.
func (m *made[T]) start() {
	m.once.Do(func() {
		go func() {
			defer close(m.done)
			m.value, m.err = m.make()
		}()
	})
}

// get starts it, and waits for it. The making goes on when ctx ends.
func (m *made[T]) get(ctx context.Context) (T, error) {
	m.start()
	select {
	case <-m.done:
		return m.value, m.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// now is what was made so far, and whether it was.
func (m *made[T]) now() (value T, ok bool, err error) {
	select {
	case <-m.done:
		return m.value, true, m.err
	default:
		return value, false, nil
	}
}

// wait waits until what was begun is over. What was not begun never will be.
func (m *made[T]) wait() {
	m.once.Do(func() {
		m.err = context.Canceled
		close(m.done)
	})
	<-m.done
}

// oneByOne is a writer for several who write.
type oneByOne struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneByOne) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(b)
}
