package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestMarked(t *testing.T) {
	err := fmt.Errorf("encode: %w", Errorf("file %s: %w", "x", fs.ErrNotExist))
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) || coded.ExitCode() != 2 {
		t.Errorf("%v has no exit status 2", err)
	}
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != "encode: file x: file does not exist" {
		t.Errorf("%v has lost what it is about", err)
	}
}

func TestName(t *testing.T) {
	if n, err := Name(nil, "MODEL"); n != "" || err != nil {
		t.Errorf("%q, %v", n, err)
	}
	if n, err := Name([]string{"combo"}, "MODEL"); n != "combo" || err != nil {
		t.Errorf("%q, %v", n, err)
	}
	var coded interface{ ExitCode() int }
	if _, err := Name([]string{""}, "MODEL"); !errors.As(err, &coded) || coded.ExitCode() != 2 {
		t.Errorf("an empty name: %v", err)
	}
}

func TestModel(t *testing.T) {
	for _, c := range []struct {
		args, flags []string
		want        string
		fails       bool
	}{
		{nil, nil, "", false},
		{[]string{"combo"}, nil, "combo", false},
		{nil, []string{"--model", "combo"}, "combo", false},
		{[]string{"combo"}, []string{"--model", "combo"}, "combo", false},
		{[]string{"combo"}, []string{"--model", "varC"}, "", true},
		{nil, []string{"--model="}, "", true},
		{[]string{""}, []string{"--model", "combo"}, "", true},
	} {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		AddModel(f, "MODEL")
		if err := f.Parse(c.flags); err != nil {
			t.Fatal(err)
		}
		got, err := Model(f, c.args, "MODEL")
		var coded Coded
		if got != c.want || (err != nil) != c.fails || err != nil && (!errors.As(err, &coded) || coded.ExitCode() != 2) {
			t.Errorf("%v %v: %q, %v", c.args, c.flags, got, err)
		}
	}
}

// Both spellings are one flag, in whatever order they come.
func TestTopK(t *testing.T) {
	for args, want := range map[string]int{"": 40, "--top-k 0": 0, "--topk=0": 0, "--topk 7": 7, "--topk 7 --top-k 8": 8} {
		f, k := pflag.NewFlagSet("", pflag.ContinueOnError), -1
		AddTopK(f, &k, 40)
		if err := f.Parse(strings.Fields(args)); err != nil || k != want || f.Changed("top-k") != (args != "") {
			t.Errorf("%q: %d, %v", args, k, err)
		}
		if help := f.FlagUsages(); !strings.Contains(help, "--top-k") || strings.Contains(help, "--topk") {
			t.Error(help)
		}
	}
}

// A temperature goes in the steps in which a board is asked for it.
func TestTemperature(t *testing.T) {
	for in, want := range map[float64]float64{0: 0, 0.7: 0.7, 0.70049: 0.7, 0.0004: 0, 100: 100} {
		if got, err := Temperature(in); err != nil || got != want {
			t.Errorf("%v: %v, %v", in, got, err)
		}
	}
	for _, in := range []float64{-0.001, 100.001, math.NaN(), math.Inf(1)} {
		var coded Coded
		if _, err := Temperature(in); !errors.As(err, &coded) {
			t.Errorf("%v: %v", in, err)
		}
	}
}
