package host

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Patience notes what is being done, and from time to time that it still is, until the function is called that it gives.
func Patience(notes io.Writer, what string) func() {
	fmt.Fprintf(notes, "%s, which takes some seconds\n", what)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(still)
		defer tick.Stop()
		for start := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				fmt.Fprintf(notes, "still %s, after %d seconds\n", what, int(time.Since(start).Seconds()))
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
}

// still is how often a long wait is told of.
var still = 15 * time.Second
