package cost

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/targets"
)

// virtualBoard makes a benchmark one of a virtual board: much faster memories, and cycles of a nanosecond.
var virtualBoard = []string{`"target":"esp32s3"`, `"target":"host","virtual":true`, `"clock_mhz":240`, `"clock_mhz":1000`, `"one_core":61.5`, `"one_core":14115`,
	`"two_cores":85`, `"two_cores":12000`, `"one_core":29`, `"one_core":23443`, `{"bytes":512,"us":20.3}`, `{"bytes":64,"us":0.0131},{"bytes":512,"us":0.0355}`,
	`"two_cores":31`, `"two_cores":44784`, `"handover_cycles":90`, `"handover_cycles":480000`, `"cycles":6000`, `"cycles":369`, `"cycles":5000`, `"cycles":370`}

func host(t *testing.T) *targets.Target {
	t.Helper()
	chip, err := targets.Load("host")
	if err != nil {
		t.Fatal(err)
	}
	return chip
}

// The benchmark of a virtual board has this machine's speeds: they belong into the target host, in its units, and in no other.
func TestCalibrateFromAVirtualBoard(t *testing.T) {
	b, was := parseBoard(t, virtualBoard...), host(t)
	now, notes, err := b.Calibrate(was)
	if err != nil {
		t.Fatal(err)
	}
	if m := now.Memories[0]; m.SequentialMBs.Value != 23443 || m.SequentialMBs.Kind != "measured" || math.Abs(m.RowMBs.Value-448/0.0224) > 1e-3 {
		t.Errorf("%+v", m)
	}
	if now.ClockMHz != was.ClockMHz || now.Profiles[0].HandOver != was.Profiles[0].HandOver {
		t.Errorf("clock %v, hand-over %v of one core", now.ClockMHz, now.Profiles[0].HandOver)
	}
	// Calls of 369 and 370 nanoseconds are 1,107 and 1,110 cycles at 3,000 MHz, of one kernel for which the target says the same.
	k := now.Profiles[0].For(targets.Product, 4, 128, 64)[0]
	if cycles := k.Cycles(1, 128, 256, 128*128); math.Abs(cycles-1108.5) > 1 {
		t.Errorf("a product takes %v cycles: %+v", cycles, k)
	}
	text := strings.Join(notes, "\n")
	for _, want := range []string{"psram: two cores read 12000 MB/s, one alone 14115", "ram has the speeds at which the virtual board read its image", "none of the target's"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	_, _, err = b.Calibrate(esp32s3(t))
	if !errors.Is(err, ErrBenchmark) || !strings.Contains(err.Error(),
		"this is the benchmark of a virtual board: its speeds are this machine's; measure on a board, or calibrate --target host") {
		t.Errorf("for a chip: %v", err)
	}
}

// What no machine can do is refused of a virtual board too, and a board that is none keeps the limits of chips.
func TestVirtualBenchmarkRefusals(t *testing.T) {
	text := strings.NewReplacer(virtualBoard...).Replace(board)
	for _, c := range []struct{ old, new, want string }{
		{`"virtual":true`, `"virtual":false`, "which must lie in"},
		{`"one_core":14115`, `"one_core":1e8`, "memories[1] (psram).sequential_mb_s.one_core is 1e+08"},
		{`"us":0.0131`, `"us":0`, "memories[2] (flash).rows[0].us is 0"},
		{`"cycles":369`, `"cycles":0`, "kernels[0] (product).cycles is 0"},
		{`"handover_cycles":480000`, `"handover_cycles":0`, "handover_cycles is 0"},
	} {
		if !strings.Contains(text, c.old) {
			t.Fatalf("the benchmark has no %s", c.old)
		}
		if _, err := ParseBenchmark([]byte(strings.Replace(text, c.old, c.new, 1))); !errors.Is(err, ErrBenchmark) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v, want %s", c.old, c.new, err, c.want)
		}
	}
}

// Every benchmark of a virtual board that is accepted makes a target host that can be written and read.
func FuzzVirtualBenchmark(f *testing.F) {
	fuzzBenchmark(f, "host", strings.NewReplacer(virtualBoard...).Replace(board))
}
