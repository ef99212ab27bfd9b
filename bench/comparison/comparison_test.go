package comparison

import (
	"errors"
	"flag"
	"io"
	"testing"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]error{"--n=3": nil, "--help": flag.ErrHelp, "--n=x": ErrUsage, "--m": ErrUsage, "more": ErrUsage} {
		f := flag.NewFlagSet("test", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		n := f.Int("n", 1, "")
		if err := Parse(f, []string{line}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", line, err, want)
		}
		if want == nil && *n != 3 {
			t.Errorf("%s gives %d", line, *n)
		}
	}
}
