package host

import (
	"context"
	"os"
	"os/signal"
)

// interrupts tells the first Ctrl-C, which stops an answer, from the next. The program's context ends with the first
// signal, and would take everything with it.
type interrupts struct {
	ctx     context.Context // of the program
	signals chan os.Signal
	end     func()

	ended   bool // the end of ctx was told
	unheard bool // ctx ended and the signal that ended it, if one did, has not been seen yet
}

func newInterrupts(ctx context.Context) *interrupts {
	i := &interrupts{ctx: ctx, signals: make(chan os.Signal, 4)}
	if !signal.Ignored(os.Interrupt) {
		signal.Notify(i.signals, os.Interrupt)
	}
	i.end = func() { signal.Stop(i.signals) }
	return i
}

// done is a channel of the program's end; nil once that was told.
func (i *interrupts) done() <-chan struct{} {
	if i.ended {
		return nil
	}
	return i.ctx.Done()
}

// onSignal says whether a signal that arrived is news: the end of the context may have told of it.
func (i *interrupts) onSignal() bool {
	if i.unheard {
		i.unheard = false
		return false
	}
	i.ended = true // the context ends with this signal too
	return true
}

// onDone takes note that the end of the context was told.
func (i *interrupts) onDone() { i.ended, i.unheard = true, true }

// next waits for an interrupt, or until stop is closed; it says whether there was one.
func (i *interrupts) next(stop <-chan struct{}) bool {
	for {
		select {
		case <-stop:
			return false
		case <-i.done():
			i.onDone()
			return true
		case <-i.signals:
			if i.onSignal() {
				return true
			}
		}
	}
}
