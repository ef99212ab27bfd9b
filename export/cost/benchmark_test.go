package cost

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/targets"
)

// board is a benchmark as a board prints it.
const board = `{"format":"chiplm-benchmark-1","target":"esp32s3","firmware":"1f3a","model":"00ff","clock_mhz":240,"psram_mhz":80,"cores":2,"cache_line":64,
 "memories":[
  {"name":"sram","sequential_mb_s":{"one_core":1500,"two_cores":2900},"rows":[{"bytes":64,"us":0.05}]},
  {"name":"psram","sequential_mb_s":{"one_core":61.5,"two_cores":85},"rows":[{"bytes":64,"us":0.9},{"bytes":128,"us":1.4},{"bytes":512,"us":4.4}]},
  {"name":"flash","sequential_mb_s":{"one_core":29,"two_cores":31},"rows":[{"bytes":512,"us":20.3}]}],
 "dma_copy_mb_s":77,"handover_cycles":90,
 "kernels":[
  {"symbol":"product","rows":128,"columns":128,"bits":4,"group":64,"n":1,"cycles":6000},
  {"symbol":"product","rows":128,"columns":128,"bits":4,"group":0,"n":1,"cycles":5000},
  {"symbol":"rmsnorm","rows":0,"columns":0,"bits":0,"group":0,"n":128,"cycles":1200},
  {"symbol":"chiplm_pie_unheard_of","rows":1,"columns":64,"bits":0,"group":0,"n":0,"cycles":700}],
 "token":[{"position":0,"us":8000},{"position":255,"us":13500}],
 "profile":[{"operation":"qkv","us":900.5}]}`

func parseBoard(t *testing.T, replace ...string) *Benchmark {
	t.Helper()
	b, err := ParseBenchmark([]byte(strings.NewReplacer(replace...).Replace(board)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What was measured is in the target, and says so; what was not is as before. The file reads back as the same target.
func TestCalibrate(t *testing.T) {
	was := esp32s3(t)
	now, notes, err := parseBoard(t).Calibrate(was)
	if err != nil {
		t.Fatal(err)
	}
	m := now.Memory(image.PSRAM)
	if m.SequentialMBs.Value != 85 || m.SequentialMBs.Kind != "measured" || !strings.Contains(m.SequentialMBs.Source, "firmware 1f3a") {
		t.Errorf("%+v", m.SequentialMBs)
	}
	// Rows of 64, 128, 512 bytes in 0.9, 1.4, 4.4 us lie on one line: 0.4 us, and 128 MB/s.
	if math.Abs(m.RowLatencyUs.Value-0.4) > 1e-9 || math.Abs(m.RowMBs.Value-128) > 1e-6 {
		t.Errorf("%+v %+v", m.RowLatencyUs, m.RowMBs)
	}
	if f := now.Memory(image.Flash); f.SequentialMBs.Value != 31 || f.RowLatencyUs.Value != 0 || math.Abs(512/f.RowMBs.Value-20.3) > 1e-9 {
		t.Errorf("%+v", f)
	}
	if now.Profiles[0].HandOver.Value != 90 || was.Profiles[0].HandOver.Value == 90 || was.Memory(image.PSRAM).SequentialMBs.Value != 83 {
		t.Error("hand-over, or the old target was changed")
	}
	if m.Faster == nil {
		t.Error("measured at 80 MHz, the higher clock is gone")
	}
	cycles := func(x *targets.Target, w targets.Work, bits, columns, grouped int, rows, groups, values float64) float64 {
		sum := 0.0
		for _, k := range x.Profiles[0].For(w, bits, columns, grouped) {
			sum += k.Cycles(1, rows, groups, values)
		}
		return sum
	}
	if got := cycles(now, targets.Norm, 0, 0, 0, 1, 0, 128); math.Abs(got-1200) > 1e-6 {
		t.Errorf("a norm takes %v cycles", got)
	}
	a, b := cycles(now, targets.Product, 4, 128, 64, 128, 256, 16384), cycles(now, targets.Product, 4, 128, 128, 128, 128, 16384)
	if math.Abs(a/6000-1) > 0.1 || math.Abs(b/5000-1) > 0.1 {
		t.Errorf("products take %v and %v cycles, measured 6000 and 5000", a, b)
	}
	if x, y := cycles(was, targets.Rotate, 0, 0, 0, 1, 0, 64), cycles(now, targets.Rotate, 0, 0, 0, 1, 0, 64); x != y {
		t.Errorf("rotations took %v, now %v", x, y)
	}
	text := strings.Join(notes, "\n")
	if !strings.Contains(text, "of no kernel of the target, and so not used: chiplm_pie_unheard_of") || !strings.Contains(text, "not measured, and so as before: ") {
		t.Errorf("%s", text)
	}
	study := was.Profile(PublishedProfile)
	if got := now.Profile(PublishedProfile); got.HandOver != study.HandOver || got.Kernels[0] != study.Kernels[0] {
		t.Error("another engine's profile was changed")
	}

	var file bytes.Buffer
	if err := writeTarget(&file, "x.yaml", now, "1f3a"); err != nil {
		t.Fatal(err)
	}
	again, err := targets.Parse("x.yaml", file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(now)
	y, _ := json.Marshal(again)
	if !bytes.Equal(x, y) {
		t.Errorf("written\n%s\nread\n%s", x, y)
	}
}

// A board at the higher clock has no higher one; one core's speed is that of all where there is one; a null is no measurement.
func TestCalibrateVariants(t *testing.T) {
	fast, _, err := parseBoard(t, `"psram_mhz":80`, `"psram_mhz":120`, `"dma_copy_mb_s":77`, `"dma_copy_mb_s":null`).Calibrate(esp32s3(t))
	if err != nil || fast.Memory(image.PSRAM).Faster != nil {
		t.Errorf("%v %+v", err, fast)
	}
	single := *esp32s3(t)
	single.Cores = 1
	one, _, err := parseBoard(t, `"cores":2`, `"cores":1`).Calibrate(&single)
	if err != nil || one.Memory(image.PSRAM).SequentialMBs.Value != 61.5 {
		t.Errorf("%v %+v", err, one)
	}
	if _, _, err := parseBoard(t).Calibrate(&single); !errors.Is(err, ErrBenchmark) || !strings.Contains(err.Error(), "cores is 2, target esp32s3 has 1") {
		t.Errorf("%v", err)
	}
	if _, _, err := parseBoard(t, `"target":"esp32s3"`, `"target":"esp32p4"`).Calibrate(esp32s3(t)); !errors.Is(err, ErrBenchmark) || !strings.Contains(err.Error(), "--target") {
		t.Errorf("%v", err)
	}
	if _, _, err := parseBoard(t, `"cycles":1200`, `"cycles":99999`).Calibrate(esp32s3(t)); !errors.Is(err, ErrBenchmark) || !strings.Contains(err.Error(), "times what the target says") {
		t.Errorf("%v", err)
	}
}

// A memory of twice the bandwidth makes a model faster, and one of half slower: calibration reaches the estimate.
func TestCalibrationReachesTheEstimate(t *testing.T) {
	last := math.Inf(1)
	for _, speed := range []string{"41", "85", "150"} {
		chip, _, err := parseBoard(t, `"two_cores":85`, `"two_cores":`+speed, `"one_core":61.5`, `"one_core":40`).Calibrate(esp32s3(t))
		if err != nil {
			t.Fatal(err)
		}
		s := subject(t, chip, "")
		r, err := s.Report(0, 255)
		if err != nil {
			t.Fatal(err)
		}
		if r.Cost.MeanMs >= last {
			t.Errorf("%s MB/s: %v ms, %v with less", speed, r.Cost.MeanMs, last)
		}
		last = r.Cost.MeanMs
	}
}

func TestBenchmarkRefusals(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`chiplm-benchmark-1`, `chiplm-benchmark-2`, `format is "chiplm-benchmark-2"`},
		{`"firmware":"1f3a"`, `"firmware":""`, "firmware is missing"},
		{`"clock_mhz":240`, `"clock_mhz":0`, "clock_mhz is 0, which must lie in 10 to 5000"},
		{`"psram_mhz":80`, `"psram_mhz":8000`, "psram_mhz is 8000"},
		{`"cores":2`, `"cores":3`, "cores is 3"},
		{`"cache_line":64`, `"cache_line":48`, "cache_line is 48, no power of two"},
		{`"two_cores":85`, `"two_cores":170`, "memories[1] (psram).sequential_mb_s.two_cores is 170, which must lie in 0.5 to 160"},
		{`"one_core":61.5`, `"one_core":-1`, "memories[1] (psram).sequential_mb_s.one_core is -1"},
		{`"two_cores":85`, `"two_cores":20`, "two_cores is 20, less than one core's 61.5"},
		{`"us":20.3`, `"us":0.1`, "memories[2] (flash).rows[0].us is 0.1"},
		{`"name":"flash"`, `"name":"rom"`, `memories[2].name is "rom"`},
		{`"name":"flash"`, `"name":"psram"`, "psram was listed before"},
		{`"dma_copy_mb_s":77`, `"dma_copy_mb_s":770`, "dma_copy_mb_s is 770"},
		{`"handover_cycles":90`, `"handover_cycles":0`, "handover_cycles is 0"},
		{`"cycles":6000`, `"cycles":900`, "kernels[0] (product).cycles is 900, which must lie in 1024"},
		{`"bits":4,"group":64`, `"bits":5,"group":64`, "kernels[0] (product).bits is 5"},
		{`"group":64`, `"group":-64`, "kernels[0] (product).group is -64"},
		{`"n":128`, `"n":0`, "kernels[2] (rmsnorm).rows, columns and n name no work"},
		{`"symbol":"rmsnorm"`, `"symbol":""`, "kernels[2].symbol is missing"},
		{`"position":255`, `"position":0`, "token[1].position is 0, which must rise"},
		{`"us":13500`, `"us":0`, "token[1].us is 0"},
		{`"us":900.5`, `"us":-2`, "profile[0] (qkv).us is -2"},
		{`"format"`, `"from":"x","format"`, `unknown field "from"`},
		{`"cycles":1200`, `"cycles":"1200"`, "cannot unmarshal string"},
		{`"us":900.5}]}`, `"us":900.5}]} {}`, "something follows the JSON object"},
		{`"us":900.5}]}`, `"us":900.5`, "unexpected EOF"},
		{`{"format"`, `null;{"format"`, "something follows"},
	} {
		if !strings.Contains(board, c.old) {
			t.Fatalf("the benchmark has no %s", c.old)
		}
		_, err := ParseBenchmark([]byte(strings.Replace(board, c.old, c.new, 1)))
		if !errors.Is(err, ErrBenchmark) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v\nwant %s", c.old, c.new, err, c.want)
		}
	}
	for _, s := range []string{"", "[]", "null", "{}", `{"format":"chiplm-benchmark-1"}`} {
		if _, err := ParseBenchmark([]byte(s)); !errors.Is(err, ErrBenchmark) {
			t.Errorf("%q: %v", s, err)
		}
	}
	big := filepath.Join(t.TempDir(), "big.json")
	if err := os.WriteFile(big, make([]byte, maxBenchmarkBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{big, t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := ReadBenchmark(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

// Whatever is accepted makes a target that can be written and read.
func FuzzBenchmark(f *testing.F) { fuzzBenchmark(f, "esp32s3", board) }

// fuzzBenchmark wants every benchmark that calibrates a chip to give a target that can be written.
func fuzzBenchmark(f *testing.F, chip, seed string) {
	f.Add([]byte(seed))
	target, err := targets.Load(chip)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := ParseBenchmark(text)
		if err != nil {
			return
		}
		made, _, err := b.Calibrate(target)
		if err != nil {
			return
		}
		if err := writeTarget(&bytes.Buffer{}, "x.yaml", made, b.Firmware); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if _, err := json.Marshal(made); err != nil {
			t.Fatal(err)
		}
	})
}
