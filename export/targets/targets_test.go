package targets

import (
	"errors"
	"os"
	"path/filepath"
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
	if x.Kernels.Cycles(4) != 0.47 || x.Kernels.Cycles(32) != x.Kernels.Float32.Value {
		t.Error("kernel costs by bits")
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
		{"cores: 2", "cores: 0", "x.yaml:13:8: cores: is 0"},
		{"cores: 2", "cores: two", "x.yaml:13:8"},
		{"cores: 2", "core: 2", `x.yaml:13:1: unknown field "core"`},
		{"usable: 278528", "usable: 600000", "x.yaml:20:13: memories[0].usable: is 600000"},
		{"align: 16 ", "align: 24 ", "memories[0].align: is 24"},
		{"tier: psram", "tier: sram", "memories[1].tier: sram is the tier of memories[0] too"},
		{"tier: psram", "tier: eeprom", `unknown tier "eeprom"`},
		{"arena: sram", "arena: flash", "buffers.arena: is flash"},
		{"value: 0.47, kind: measured", "value: -1, kind: measured", "kernels.int4.value: is -1"},
		{"value: 0.47, kind: measured", "value: 0.47, kind: guessed", `kernels.int4.kind: is "guessed"`},
		{"  int8: ", "  int9: ", "unknown field"},
		{"pages: 512 ", "pages: 5 ", "mmu.app_pages: is 17"},
		{"model_bytes: 0xEF0000", "model_bytes: 0xFF0000", "flash.model_bytes: ends at 0x1100000"},
		{"name: esp32s3", "name: esp32s3\nname: again", "x.yaml:12:1"},
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
