package check

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
	"github.com/chiplm/chiplm/engine/pie/cycles"
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
	if out, err := execute(t, "run"); err != nil || strings.Count(out, "\n") != want+1 || !strings.Contains(out, " each ") {
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
		if out, err := execute(t, "trace", k.Symbol, "--first", "5"); err != nil || !strings.Contains(out, "entry") || strings.Count(out, "\n") != 7 {
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
		"7 positions of 32":               {Columns: 32, N: 7},
		"128 values":                      {Rows: 128},
		"64 values":                       {N: 64},
		"32 values, 4 bits":               {Columns: 32, Bits: 4},
	} {
		if got := About(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Both forms of a name choose a kernel.
func TestNames(t *testing.T) {
	var out [2]string
	for i, name := range []string{"exp", "chiplm_pie_exp"} {
		var err error
		if out[i], err = execute(t, "run", "--kernel", name); err != nil {
			t.Fatal(err)
		}
	}
	if out[0] != out[1] || !strings.Contains(out[0], "exp ") {
		t.Errorf("%s%s", out[0], out[1])
	}
}

// docs/pie.md shows the table as it is printed, which fits 100 columns.
func TestDocsShowTheTable(t *testing.T) {
	out, err := execute(t, "run")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../docs/pie.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if len(line) > 101 || strings.HasSuffix(line, " \n") {
			t.Errorf("%d columns: %q", len(line)-1, line)
		}
		if !strings.Contains(string(text), "\n    "+line) {
			t.Errorf("docs/pie.md lacks a line of chiplm pie run:\n%s", line)
		}
	}
}

// Every size that is allowed runs; sizes that a kernel has not, or cannot have, are refused by name.
func TestTraceSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range pie.Kernels() {
		c, err := cycles.New(k, pie.Files)
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for range 200 {
			shape, x := k.Shapes[0], sizes()[r.IntN(len(sizes()))]
			*x.of(&shape) = (r.IntN(100) - 2) * []int{1, 4, 32}[r.IntN(3)]
			if allowed(k, x, *x.of(&shape)) != nil || together(k, shape) != nil {
				continue
			}
			ran++
			if _, err := c.Run(t.Context(), cycles.Make(k, shape, pie.Random, cycles.Seed)); err != nil {
				t.Errorf("%s of %+v: %v", k.Symbol, shape, err)
			}
		}
		if ran == 0 {
			t.Errorf("%s ran with no other size", k.Symbol)
		}
	}
	for args, want := range map[string]string{
		"exp --rows 4":                     "--rows: chiplm_pie_exp has no such size",
		"exp --n 0":                        "--n 0: wants 1 to 65,536",
		"exp --n 9999999":                  "--n 9999999: wants 1 to 65,536",
		"rotate --columns 33":              "multiples of 4",
		"scores --columns 24":              "takes 16, 32, 48, 64, 128",
		"rows4 --rows 65536 --columns 128": "is not made",
		"listed4_c128g64 --listed 321":     "at most 320 rows",
		"exp --first -1":                   "--first -1",
	} {
		_, err := execute(t, append([]string{"trace"}, strings.Fields(args)...)...)
		var coded interface{ ExitCode() int }
		if err == nil || !asCoded(err, &coded) || coded.ExitCode() != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// Faults are put into the kernel that is named, and the kernels of a file have all of the file's instructions.
func TestMutateOneKernel(t *testing.T) {
	whole, err := Mutate(t.Context(), "neurons.S", Mutation{Cases: 20, Every: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, name := range []string{"chiplm_pie_open", "chiplm_pie_used"} {
		one, err := Mutate(t.Context(), "neurons.S", Mutation{Cases: 20, Every: 1, Kernel: name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if one.Tried == 0 || one.Tried >= whole.Tried {
			t.Errorf("%s: %d faults, the file has %d", name, one.Tried, whole.Tried)
		}
		tried += one.Tried
	}
	if tried != whole.Tried {
		t.Errorf("%d faults in both kernels, %d in the file", tried, whole.Tried)
	}
	if _, err := Mutate(t.Context(), "neurons.S", Mutation{Every: 1, Kernel: "chiplm_pie_exp"}, nil); err == nil {
		t.Error("a kernel of another file was taken")
	}
}
