package eval

import (
	"context"
	"sync"
)

// worker does some of the things that workers share.
type worker struct {
	do   func(i int) error // thing i
	tell func(i int)       // after it; for one worker at a time
	end  func() error      // when nothing is left, or after an error; for one worker at a time
}

// share has workers do n things, each as it becomes free. The first error ends all.
func share(ctx context.Context, n, workers int, start func() (*worker, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var mu sync.Mutex
	work := func(w *worker) error {
		for i := range next {
			if err := w.do(i); err != nil {
				return err
			}
			mu.Lock()
			w.tell(i)
			mu.Unlock()
		}
		return nil
	}
	var wg sync.WaitGroup
	for range max(1, min(workers, n)) {
		wg.Go(func() {
			w, err := start()
			if err != nil {
				cancel(err)
				return
			}
			if err := work(w); err != nil {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err := w.end(); err != nil {
				cancel(err)
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
