package parts

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program is a program of n bytes for the chip of a number, with a version.
func program(id uint16, n int, version string) []byte {
	b := make([]byte, max(n, versionAt+versionBytes))
	b[0] = programMagic
	binary.LittleEndian.PutUint16(b[programChip:], id)
	binary.LittleEndian.PutUint32(b[descriptionAt:], description)
	copy(b[versionAt:], version)
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

const built = `{"write_flash_args": ["--flash_mode", "dio"],
 "flash_files": {"0x0": "bootloader/bootloader.bin", "0x10000": "chiplm.bin", "0x8000": "partition_table/partition-table.bin"},
 "bootloader": {"offset": "0x0", "file": "bootloader/bootloader.bin", "encrypted": "false"},
 "app": {"offset": "0x10000", "file": "chiplm.bin", "encrypted": "false"},
 "partition-table": {"offset": "0x8000", "file": "partition_table/partition-table.bin", "encrypted": "false"},
 "extra_esptool_args": {"after": "hard_reset", "stub": true, "chip": "esp32s3"}}`

func buildFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, argsFile), []byte(built))
	write(t, filepath.Join(dir, "bootloader", "bootloader.bin"), program(9, 0x5000, ""))
	write(t, filepath.Join(dir, "partition_table", "partition-table.bin"), board(t).Binary())
	write(t, filepath.Join(dir, "chiplm.bin"), program(9, 300_000, "v1.2-3-gabc"))
	return dir
}

func s3(t *testing.T) *Chip {
	t.Helper()
	chip, err := ChipNamed("esp32s3")
	if err != nil {
		t.Fatal(err)
	}
	return chip
}

func TestBuildFolder(t *testing.T) {
	dir := buildFolder(t)
	check := func(fw *Firmware, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []Part{{Name: "bootloader", Offset: 0, Bytes: 0x5000}, {Name: "partition table", Offset: 0x8000, Bytes: TableBytes},
			{Name: "firmware", Offset: 0x10000, Bytes: 300_000}} {
			got := fw.Parts[i]
			got.Path = ""
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		if fw.Version != "v1.2-3-gabc" || fw.Table.Find(ModelPartition) == nil {
			t.Errorf("version %q, table %+v", fw.Version, fw.Table)
		}
	}
	check(OpenFirmware(dir, s3(t)))
	project := t.TempDir()
	if err := os.Rename(dir, filepath.Join(project, "build")); err != nil {
		t.Fatal(err)
	}
	check(OpenFirmware(project, s3(t))) // the folder above the build
	flat := t.TempDir()
	write(t, filepath.Join(flat, Bootloader), program(9, 0x5000, ""))
	write(t, filepath.Join(flat, TableFile), board(t).Binary())
	write(t, filepath.Join(flat, App), program(9, 300_000, "v1.2-3-gabc"))
	check(OpenFirmware(flat, s3(t)))
}

func TestBuildFolderRefusals(t *testing.T) {
	replace := func(old, new string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			text := strings.Replace(built, old, new, 1)
			if text == built {
				t.Fatalf("%q is not there", old)
			}
			write(t, filepath.Join(dir, argsFile), []byte(text))
		}
	}
	file := func(name string, b []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) { write(t, filepath.Join(dir, filepath.FromSlash(name)), b) }
	}
	noApp, err := ParseCSV([]byte("model,0x40,0,0x110000,4M"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, string)
		kind  error
		want  string
	}{
		"other chip's build":  {replace(`"chip": "esp32s3"`, `"chip": "esp32"`), ErrChip, "set-target esp32s3"},
		"no JSON":             {replace(`{"write`, `{write`), ErrFirmware, argsFile},
		"no application":      {replace(`"app"`, `"application"`), ErrFirmware, "of the app"},
		"encrypted":           {replace(`"encrypted": "false"`, `"encrypted": "true"`), ErrFirmware, "encrypted"},
		"boot loader's place": {replace(`"offset": "0x0"`, `"offset": "0x1000"`), ErrFirmware, "starts at 0x0"},
		"app's place":         {replace(`"offset": "0x10000"`, `"offset": "0x20000"`), ErrFirmware, "at 0x20000, its partition table at 0x10000"},
		"other chip's app":    {file("chiplm.bin", program(5, 1000, "")), ErrChip, "number 5"},
		"other chip's boot":   {file("bootloader/bootloader.bin", program(0, 1000, "")), ErrChip, "number 0"},
		"no program":          {file("chiplm.bin", []byte("text")), ErrFirmware, "no program"},
		"app too large":       {file("chiplm.bin", program(9, 1<<20+1, "")), ErrFirmware, "room for 1048576"},
		"boot too large":      {file("bootloader/bootloader.bin", program(9, 0x8001, "")), ErrFirmware, "room for 32768"},
		"damaged table":       {file("partition_table/partition-table.bin", board(t).Binary()[:40]), ErrTable, "partition-table.bin"},
		"table without app":   {file("partition_table/partition-table.bin", noApp.Binary()), ErrFirmware, "no partition for an application (model)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := buildFolder(t)
			c.spoil(t, dir)
			_, err := OpenFirmware(dir, s3(t))
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	// However a firmware is not there, what to do is the same.
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "none", "build")} {
		if _, err := OpenFirmware(dir, s3(t)); !errors.Is(err, ErrFirmware) || !strings.Contains(err.Error(), "idf.py build") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := OpenFirmware(filepath.Join(buildFolder(t), "chiplm.bin"), s3(t)); !errors.Is(err, ErrFirmware) || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("a file: %v", err)
	}
	dir := buildFolder(t)
	if err := os.Remove(filepath.Join(dir, "chiplm.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFirmware(dir, s3(t)); !errors.Is(err, ErrFirmware) || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "idf.py build") {
		t.Errorf("a part that is gone: %v", err)
	}
}

func TestUnknownChip(t *testing.T) {
	if _, err := ChipNamed("esp8266"); err == nil {
		t.Error("accepted")
	}
}
