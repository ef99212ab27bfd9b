package flash

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/firmware/internal/tinymodel"
)

func table(t *testing.T, model string) parts.Table {
	t.Helper()
	x, err := parts.ParseCSV([]byte("nvs,data,nvs,0x9000,0x6000\nfactory,app,factory,0x10000,768K\n" + model))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

const modelLine = "model,0x40,0,0xD0000,0xF30000"

// firmware writes a folder of firmware for the chip of a number.
func firmware(t *testing.T, chip uint16, model string) string {
	t.Helper()
	program := make([]byte, 5000)
	program[0] = 0xE9
	binary.LittleEndian.PutUint16(program[12:], chip)
	dir := t.TempDir()
	for name, b := range map[string][]byte{parts.Bootloader: program[:3000], parts.TableFile: table(t, model).Binary(), parts.App: program} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := Command()
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err = c.ExecuteContext(context.Background())
	return stdout.String(), stderr.String(), err
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Both spellings of esptool write every part to its place, whether the firmware is a folder of its own or in the export.
func TestEverything(t *testing.T) {
	dir := tinymodel.Export(t, "esp32s3", nil)
	fw := firmware(t, 9, modelLine)
	chip, err := parts.ChipNamed("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	built, err := parts.OpenFirmware(fw, chip)
	if err != nil {
		t.Fatal(err)
	}
	carrying := tinymodel.Export(t, "esp32s3", built)
	for _, c := range []struct {
		version string
		args    []string
	}{
		{"5.6.0", []string{dir, "--firmware", fw}},
		{"4.12.0", []string{dir, "--firmware", fw}},
		{"5.6.0", []string{carrying}},
		{"5.6.0", []string{filepath.Join(dir, export.ImageFile), "--firmware", fw}},
	} {
		flash, log := fake(t, c.version, nil)
		out, _, err := run(t, append(c.args, "--port", "/dev/ttyX")...)
		if err != nil || !strings.Contains(out, "verified") {
			t.Fatalf("%s %v: %v\n%s", c.version, c.args, err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(read(t, log))), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "--chip esp32s3 --port /dev/ttyX --baud 460800 --before default") ||
			!strings.Contains(lines[1], "--after hard") {
			t.Errorf("%s: %q", c.version, lines)
		}
		got := read(t, flash)
		for at, file := range map[int]string{0: filepath.Join(fw, parts.Bootloader), 0x8000: filepath.Join(fw, parts.TableFile), 0x10000: filepath.Join(fw, parts.App),
			0xD0000: filepath.Join(dir, export.ImageFile)} {
			if want := read(t, file); !bytes.Equal(got[at:at+len(want)], want) {
				t.Errorf("%s: at %#x there is not %s", c.version, at, file)
			}
		}
	}
}

// A model alone goes where the board's own table has it, and nowhere when there is none.
func TestModelAlone(t *testing.T) {
	dir := tinymodel.Export(t, "esp32s3", nil)
	image := read(t, filepath.Join(dir, export.ImageFile))
	for name, c := range map[string]struct {
		on   []byte
		at   int // 0: refused
		want string
	}{
		"as the target":  {table(t, modelLine).Binary(), 0xD0000, "only the model"},
		"another table":  {table(t, "model,0x40,0,0x210000,4M").Binary(), 0x210000, "has the model at 0x210000"},
		"too small":      {table(t, "model,0x40,0,0x210000,0x1000").Binary(), 0, "does not fit"},
		"other firmware": {table(t, "storage,data,spiffs,0x210000,1M").Binary(), 0, "(nvs, factory, storage)"},
		"erased":         {nil, 0, "flash the firmware too"},
		"damaged":        {append(table(t, modelLine).Binary()[:50], 7), 0, "bad partition table"},
	} {
		t.Run(name, func(t *testing.T) {
			flash, log := fake(t, "5.6.0", map[int64][]byte{parts.TableOffset: c.on})
			out, notes, err := run(t, dir, "--port", "/dev/ttyX")
			if c.at == 0 {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if lines := string(read(t, log)); strings.Contains(lines, "write-flash") {
					t.Errorf("it was written all the same: %s", lines)
				}
				return
			}
			if err != nil || !strings.Contains(notes, c.want) || !strings.Contains(out, fmt.Sprintf("%#x", c.at)) {
				t.Fatalf("%v\n%s\n%s", err, notes, out)
			}
			if got := read(t, flash); !bytes.Equal(got[c.at:c.at+len(image)], image) {
				t.Error("the model is not there")
			}
		})
	}
}

// A byte that was not written as it should be is found.
func TestVerification(t *testing.T) {
	dir, fw := tinymodel.Export(t, "esp32s3", nil), firmware(t, 9, modelLine)
	fake(t, "5.6.0", nil)
	t.Setenv(fakeSpoil, "0xd0123")
	out, _, err := run(t, dir, "--firmware", fw, "--port", "/dev/ttyX")
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "does not hold what was written") || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDryRun(t *testing.T) {
	dir, fw := tinymodel.Export(t, "esp32s3", nil), firmware(t, 9, modelLine)
	_, log := fake(t, "4.12.0", nil)
	out, _, err := run(t, dir, "--firmware", fw, "--port", "/dev/ttyX", "--dry-run")
	if err != nil {
		t.Fatal(err)
	}
	want := "esptool.py --chip esp32s3 --port /dev/ttyX --baud 460800 --before default_reset --after no_reset write_flash --flash_mode keep --flash_freq keep --flash_size keep 0x0 " +
		filepath.Join(fw, parts.Bootloader)
	if !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 2 {
		t.Errorf("%s\nwant\n%s", out, want)
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("something was run")
	}
	// A model alone: the line that reads the board's table comes first, and the offset is told to be assumed, and by whom.
	for _, c := range []struct{ args, from string }{{"", "that of the target esp32s3"}, {fw, "that of the partition table of " + fw}} {
		args := []string{dir, "--port", "/dev/ttyX", "--dry-run", "--model-only"}
		if c.args != "" {
			args = append(args, "--firmware", c.args)
		}
		out, notes, err := run(t, args...)
		lines := strings.Split(out, "\n")
		if err != nil || len(lines) != 5 || !strings.HasPrefix(lines[0], "# ") || !strings.Contains(lines[1], "read_flash 0x8000 ") ||
			!strings.Contains(lines[2], "write_flash") || !strings.Contains(lines[3], "verify_flash") || !strings.Contains(notes, c.from) || !strings.Contains(notes, "assumption") {
			t.Errorf("%v: %v\n%s\n%s", args, err, out, notes)
		}
	}
	t.Setenv("PATH", t.TempDir()) // without esptool
	out, notes, err := run(t, dir, "--dry-run", "--json")
	var r report
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Write[0] != "esptool" || !r.ModelOnly || r.Verified || !r.Assumed || len(r.Read) == 0 || !strings.Contains(notes, "pip") {
		t.Errorf("%v\n%s\n%s", err, out, notes)
	}
	if _, _, err := run(t, dir, "--port", "/dev/ttyX"); !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "pip") {
		t.Errorf("without esptool: %v", err)
	}
}

func TestToolThatDoesNotWork(t *testing.T) {
	fake(t, "broken", nil)
	if _, err := FindTool(context.Background()); !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "no module named serial") {
		t.Errorf("%v", err)
	}
}

func TestRefusals(t *testing.T) {
	fake(t, "5.6.0", nil)
	dir := tinymodel.Export(t, "esp32s3", nil)
	host := tinymodel.Export(t, "host", nil)
	damaged := tinymodel.Export(t, "esp32s3", nil)
	path := filepath.Join(damaged, export.GoldenFile)
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := read(t, filepath.Join(tinymodel.Export(t, "esp32s3", nil, "d_ff=64"), export.ImageFile))
	swapped := tinymodel.Export(t, "esp32s3", nil)
	if err := os.WriteFile(filepath.Join(swapped, export.ImageFile), other, 0o600); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.clm")
	if err := os.WriteFile(cut, other[:len(other)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(t.TempDir(), "small.yaml")
	chip, err := os.ReadFile("../../../export/targets/esp32s3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(small, regexp.MustCompile(`usable: \d+`).ReplaceAll(chip, []byte("usable: 2000")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		kind error
		want string
	}{
		"host's export":        {[]string{host}, parts.ErrChip, "made for the target host"},
		"host's as the chip's": {[]string{host, "--target", "esp32s3"}, parts.ErrChip, "not for esp32s3"},
		"image changed":        {[]string{swapped}, ErrDamaged, "export again"},
		"image cut":            {[]string{cut}, nil, "cut.clm"},
		"placement of another": {[]string{filepath.Join(dir, export.ImageFile), "--target", small}, parts.ErrChip, "of sram"},
		"firmware of another":  {[]string{dir, "--firmware", firmware(t, 0, modelLine)}, parts.ErrChip, "number 0"},
		"firmware of others":   {[]string{dir, "--firmware", firmware(t, 9, "x,0x40,0,0xD0000,1M")}, parts.ErrFirmware, `no partition "model" (nvs, factory, x)`},
		"partition too small":  {[]string{dir, "--firmware", firmware(t, 9, "model,0x40,0,0xD0000,0x1000")}, ErrFit, "bytes"},
		"no export":            {[]string{t.TempDir()}, export.ErrFolder, "not an export folder"},
		"nothing":              {[]string{filepath.Join(dir, "none")}, os.ErrNotExist, "none: there is no such export folder or image; chiplm export"},
		"a speed of 0":         {[]string{dir, "--baud", "0"}, nil, "--baud"},
		"an empty name":        {[]string{""}, nil, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, append(c.args, "--port", "/dev/ttyX", "--dry-run")...)
			if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, _, err := run(t, damaged, "--port", "/dev/ttyX", "--dry-run"); err != nil {
		t.Errorf("a file that is not flashed: %v", err)
	}
}

// With the sources of the firmware at hand, their table says where a model goes.
func TestTableOfSources(t *testing.T) {
	fake(t, "5.6.0", nil)
	dir, sources := tinymodel.Export(t, "esp32s3", nil), t.TempDir()
	if err := os.WriteFile(filepath.Join(sources, parts.CSVFile), []byte("factory,app,factory,0x10000,2M\nmodel,0x40,0,,4M"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, dir, "--model-only", "--firmware", sources, "--dry-run")
	if err != nil || !strings.Contains(out, "0x210000 ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestQuote(t *testing.T) {
	if got, want := quote([]string{"a/b-c.bin", "it's here", "", "$x"}), `a/b-c.bin 'it'\''s here' '' '$x'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
