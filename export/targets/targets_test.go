package targets

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export/image"
)

func TestBuiltinLoad(t *testing.T) {
	if got := strings.Join(Builtin(), " "); got != "esp32s3 host" {
		t.Fatalf("built in: %s", got)
	}
	for _, n := range Builtin() {
		x, err := Load(n)
		if err != nil {
			t.Fatal(err)
		}
		if x.Name != n {
			t.Errorf("%s is named %s", n, x.Name)
		}
	}
}

// What the data sheets say of the chip.
func TestESP32S3(t *testing.T) {
	x, err := Load("esp32s3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if x.MMU.PageBytes*x.MMU.Pages != 32<<20 || x.Flash.ModelOffset+x.Flash.ModelBytes != 16<<20 ||
		x.Flash.ModelOffset%x.MMU.PageBytes != 0 || x.Flash.ModelOffset-0x10000 != x.Flash.AppBytes {
		t.Errorf("address table or partitions: %+v %+v", x.MMU, x.Flash)
	}
	if x.Memory(image.PSRAM).Bytes != 8<<20 || x.Memory(image.SRAM).Bytes != 512<<10 {
		t.Error("memory sizes")
	}
	// A random row of 512 bytes was measured at 20.3 us.
	f := x.Memory(image.Flash)
	if us := f.RowLatencyUs.Value + 512/f.RowMBs.Value; us < 20.2 || us > 20.4 {
		t.Errorf("a 512-byte row from flash takes %.2f us", us)
	}
	// The line-size figures: a miss of a line takes 328 ns and its bytes at 147 MB/s.
	p := x.Memory(image.PSRAM)
	for line, speed := range map[float64]float64{16: 37.0, 32: 58.1, 64: 84.2} {
		if got := line / (p.RowLatencyUs.Value + line/p.RowMBs.Value); got < 0.98*speed || got > 1.02*speed {
			t.Errorf("lines of %v bytes: %.1f MB/s, measured %.1f", line, got, speed)
		}
	}
	study := x.Profile("study")
	if k := study.For(Product, 4, 128, 64); len(k) != 1 || k[0].Value != 0.47 || study.For(Norm, 0, 0, 0) != nil || x.Profile("") != &x.Profiles[0] || x.Profile("none") != nil {
		t.Error("kernels of the study")
	}
	// The calibrated figures lie where physics allows.
	for _, r := range []struct {
		what             string
		value, low, high float64
	}{
		{"the higher clock: between bytes alone and all of a miss", p.Faster.Times.Value, 1.23, 1.5},
		{"a cluster's mean: 128 plain products, and its place in the order", study.For(Means, 0, 0, 0)[0].Row, 200, 3000},
		{"the best clusters' share of the rows", study.Reads.Rows.Value, 0.1, 0.5},
	} {
		if r.value < r.low || r.value > r.high {
			t.Errorf("%s: %v is outside %v to %v", r.what, r.value, r.low, r.high)
		}
	}
}

func TestFileTarget(t *testing.T) {
	src, err := builtin.ReadFile("host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(src), "name: host", "name: mine", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := Load(path)
	if err != nil || x.Name != "mine" {
		t.Fatalf("%v %v", x, err)
	}
	if _, err := Load("esp32s4"); err == nil || !strings.Contains(err.Error(), "esp32s3, host") {
		t.Errorf("unknown name: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	src, err := builtin.ReadFile("esp32s3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"cores: 2", "cores: 0", "x.yaml:14:8: cores: is 0"},
		{"cores: 2", "cores: two", "x.yaml:14:8"},
		{"cores: 2", "core: 2", `x.yaml:14:1: unknown field "core"`},
		{"usable: 278528", "usable: 600000", "x.yaml:21:13: memories[0].usable: is 600000"},
		{"align: 16 ", "align: 24 ", "memories[0].align: is 24"},
		{"tier: psram", "tier: sram", "memories[1].tier: sram is the tier of memories[0] too"},
		{"tier: psram", "tier: eeprom", `unknown tier "eeprom"`},
		{"arena: sram", "arena: flash", "buffers.arena: is flash"},
		{"value: 0.47, kind: measured", "value: -1, kind: measured", "profiles[1].kernels[0].value: is -1"},
		{"value: 0.47, kind: measured", "value: 0.47, kind: guessed", `profiles[1].kernels[0].kind: is "guessed"`},
		{"value: 0.47, kind", "value: .nan, kind", "profiles[1].kernels[0].value: is NaN"},
		{"work: scores, split: true, value: 0.5", "work: score, split: true, value: 0.5", `is "score", which is no kind of work`},
		{"bits: 8, split: true, value: 0.37, kind: estimate, source: \"4", "bits: 3, split: true, value: 0.37, kind: estimate, source: \"4", "bits: is 3"},
		{"covers: [softmax, norm", "covers: [norm", "kernels: have none for softmax, nor does fixed.covers list it"},
		{"covers: [softmax", "covers: [mix, softmax", "mix has a kernel and is covered by fixed work too"},
		{"- {work: means, row:", "- {work: mix, row:", "mix is listed before"},
		{"search: means", "search: luck", `reads.search: is "luck"`},
		{"name: study", "name: ours", "each profile needs a name of its own"},
		{"line: 64", "line: 63", "memories[1].line: is 63"},
		{"times: {value: 1.361", "times: {value: 0.9", "must lie above 1"},
		{"neurons: {value: 0.21", "neurons: {value: 1.21", "a share must not be above 1"},
		{"split: true, call: 38", "splat: true, call: 38", "unknown field"},
		{"pages: 512 ", "pages: 5 ", "mmu.app_pages: is 13"},
		{"model_bytes: 0xF30000", "model_bytes: 0xFF0000", "flash.model_bytes: ends at 0x10c0000"},
		{"name: esp32s3", "name: esp32s3\nname: again", "x.yaml:13:1"},
		{"clock_mhz: 240", "", "clock_mhz: is 0"},
		{"batch: 8 ", "batch: 0 ", "buffers.batch: is 0"},
	} {
		if !strings.Contains(string(src), c.old) {
			t.Fatalf("the file has no %q", c.old)
		}
		_, err := Parse("x.yaml", []byte(strings.Replace(string(src), c.old, c.new, 1)))
		if !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s -> %s: %v\nwant %s", c.old, c.new, err, c.want)
		}
	}
	for _, s := range []string{"", "[]", "a: [", "- &a [*a]", "name: \x00", "memories:\n- *x"} {
		if _, err := Parse("x.yaml", []byte(s)); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range Builtin() {
		src, err := builtin.ReadFile(n + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if x, err := Parse("x.yaml", src); (x == nil) == (err == nil) {
			t.Errorf("%v, %v", x, err)
		}
	})
}

// Of kernels for one stage the first that fits is taken; stages add up.
func TestKernelsFor(t *testing.T) {
	p := Profile{Kernels: []Kernel{
		{Work: Product, Bits: 4, Columns: 128, Grouped: 64, Symbol: "special"},
		{Work: Product, Bits: 4, Symbol: "general"},
		{Work: Product, Bits: 4, Stage: "scale", Symbol: "scaling"},
		{Work: Product, Bits: 8, Symbol: "eight"},
		{Work: Norm, Symbol: "norm"},
	}}
	for _, c := range []struct {
		work                   Work
		bits, columns, grouped int
		want                   string
	}{
		{Product, 4, 128, 64, "special scaling"},
		{Product, 4, 128, 32, "general scaling"},
		{Product, 4, 64, 64, "general scaling"},
		{Product, 8, 128, 64, "eight"},
		{Product, 2, 128, 64, ""},
		{Norm, 0, 0, 0, "norm"},
	} {
		var names []string
		for _, k := range p.For(c.work, c.bits, c.columns, c.grouped) {
			names = append(names, k.String())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if c := (&Kernel{Call: 1000, Row: 100, Group: 10, Value: 1}).Cycles(2, 3, 4, 5); c != 2345 {
		t.Errorf("%v cycles", c)
	}
}

// A faster memory is a copy.
func TestWith(t *testing.T) {
	x, err := Load("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	fast := x.With(image.PSRAM)
	if fast.Memory(image.PSRAM).SequentialMBs.Value != 83*x.Memory(image.PSRAM).Faster.Times.Value || x.Memory(image.PSRAM).SequentialMBs.Value != 83 ||
		fast.With(image.PSRAM) != nil || x.With(image.Flash) != nil {
		t.Errorf("%+v", fast)
	}
}

// Work that has no kernel of its own is done by the kernels of another, and by its own where there is one.
func TestKernelsInstead(t *testing.T) {
	x, err := Load("esp32s3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := x.Profile("ours")
	for _, c := range []struct {
		work           Work
		bits, columns  int
		grouped, count int
		is             Work
	}{
		{Listed, 4, 128, 64, 1, Listed}, {Listed, 4, 128, 128, 1, Product}, {Listed, 2, 320, 64, 1, Product},
		{HeadNorm, 0, 0, 0, 3, HeadNorm}, {HeadCode, 0, 0, 0, 3, HeadCode},
	} {
		k := p.For(c.work, c.bits, c.columns, c.grouped)
		if len(k) != c.count || k[0].Work != c.is {
			t.Errorf("%+v: %+v", c, k)
		}
	}
	p.Kernels = slices.DeleteFunc(p.Kernels, func(k Kernel) bool { return k.Work == HeadNorm || k.Work == HeadCode })
	if a, b := p.For(HeadNorm, 0, 0, 0), p.For(Norm, 0, 0, 0); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("%+v for %+v", a, b)
	}
	if a, b := p.For(HeadCode, 0, 0, 0), p.For(Quantise, 0, 0, 0); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("%+v for %+v", a, b)
	}
	if k := p.For(Means, 0, 0, 0); len(k) != 0 {
		t.Errorf("%+v", k)
	}
}
