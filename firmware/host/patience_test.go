package host

import (
	"strings"
	"testing"
	"time"
)

// lines takes what is written, as long as there is room.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// A long wait is told of again and again.
func TestPatience(t *testing.T) {
	defer func(d time.Duration) { still = d }(still)
	still = time.Millisecond
	again := make(chan string, 100)
	end := Patience(lines(again), "making it")
	for _, want := range []string{"making it, which takes", "still making it, after 0 seconds", "still making it"} {
		if text := <-again; !strings.HasPrefix(text, want) {
			t.Errorf("%q, want %q", text, want)
		}
	}
	end()
	end()
}
