package usage

import (
	"errors"
	"fmt"
	"io/fs"
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
