package check

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
)

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := Command()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestRunCommand(t *testing.T) {
	out, err := execute(t, "run", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, k := range pie.Kernels() {
		want += len(k.Shapes)
	}
	if len(rows) != want {
		t.Errorf("%d rows for %d shapes", len(rows), want)
	}
	for _, r := range rows {
		for _, key := range []string{"kernel", "group", "cycles_per_weight", "cycles", "instructions", "stalls", "equal"} {
			if _, ok := r[key]; !ok {
				t.Errorf("%v has no %s", r["kernel"], key)
			}
		}
		if r["equal"] != true || r["cycles"].(float64) <= 0 || r["cycles_per_weight"].(float64) <= 0 {
			t.Errorf("%v", r)
		}
	}
	if out, err := execute(t, "run"); err != nil || strings.Count(out, "\n") != want+1 || !strings.Contains(out, "per weight") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestListAndTrace(t *testing.T) {
	out, err := execute(t, "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range pie.Kernels() {
		if !strings.Contains(out, k.Symbol) || !strings.Contains(out, k.About) {
			t.Errorf("the list lacks %s", k.Symbol)
		}
	}
	if len(pie.Kernels()) > 0 {
		k := pie.Kernels()[0]
		if out, err := execute(t, "trace", k.Symbol, "--first", "5"); err != nil || !strings.Contains(out, "entry") || strings.Count(out, "\n") != 6 {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

func TestCommandsRefuse(t *testing.T) {
	for _, args := range [][]string{{"run", "--kernel", "x"}, {"trace", "x"}, {"mutate", "--kernel", "x"}, {"mutate", "--every", "0"}} {
		_, err := execute(t, args...)
		var coded interface{ ExitCode() int }
		if err == nil || !asCoded(err, &coded) || coded.ExitCode() != 2 {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func asCoded(err error, coded *interface{ ExitCode() int }) bool {
	c, ok := err.(interface{ ExitCode() int })
	*coded = c
	return ok
}

func TestAbout(t *testing.T) {
	for want, s := range map[string]pie.Shape{
		"128 x 64, 4 bits, f16, 3 listed": {Rows: 128, Columns: 64, Bits: 4, Group: 32, Half: true, Listed: 3},
		"32, n 7":                         {Columns: 32, N: 7},
	} {
		if got := About(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
