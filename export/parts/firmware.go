package parts

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chiplm/chiplm/data/regular"
)

// Names of the parts, and of their files in a folder that is no build of the framework.
const (
	Bootloader = "bootloader.bin"
	TableFile  = "partition-table.bin"
	App        = "firmware.bin"
)

// argsFile is what a build says about its parts.
const argsFile = "flasher_args.json"

// ModelPartition is the name of the partition that holds an image.
const ModelPartition = "model"

// buildFirst is what to do without a firmware.
const buildFirst = "build the firmware first with ESP-IDF (idf.py build, see firmware/README.md), and give its build folder"

// ErrFirmware is wrapped by every refusal of a firmware folder.
var ErrFirmware = errors.New("bad firmware")

// ErrChip is wrapped when a file or a model is meant for another chip.
var ErrChip = errors.New("another chip's")

// Chip is what flashing needs to know of a chip.
type Chip struct {
	Name       string // of esptool
	Family     string // of browser flashers
	ID         uint16 // in the header of a program
	Bootloader uint32 // offset
}

var chips = []Chip{{Name: "esp32s3", Family: "ESP32-S3", ID: 9, Bootloader: 0}}

// ChipNamed finds a chip by esptool's name for it.
func ChipNamed(name string) (*Chip, error) {
	for i := range chips {
		if chips[i].Name == name {
			return &chips[i], nil
		}
	}
	return nil, fmt.Errorf("no way to flash a %q is known: the chip esp32s3 is", name)
}

// Part is a file and its place in flash.
type Part struct {
	Name   string // "bootloader", "partition table", "firmware" or "model"
	Path   string
	Offset uint32
	Bytes  int64
}

// Firmware is a build: boot loader, partition table and application, without a model.
type Firmware struct {
	Parts   []Part // bootloader, partition table, firmware
	Table   Table
	Version string // that the application says of itself; empty if it says none
}

// OpenFirmware reads the parts of a build for a chip and checks each: that it is there, is of this chip, and fits.
func OpenFirmware(dir string, chip *Chip) (*Firmware, error) {
	fw, err := locate(dir, chip)
	if err != nil {
		return nil, err
	}
	table := &fw.Parts[1]
	b, err := read(table)
	if err != nil {
		return nil, err
	}
	if fw.Table, err = ParseBinary(b); err != nil {
		return nil, fmt.Errorf("%s: %w", table.Path, err)
	}
	app := fw.Table.FirstApp()
	if app == nil {
		return nil, fmt.Errorf("%w: %s has no partition for an application (%s)", ErrFirmware, table.Path, fw.Table.Names())
	}
	if fw.Parts[2].Offset == 0 {
		fw.Parts[2].Offset = app.Offset
	}
	for i, room := range map[int]int64{0: int64(table.Offset) - int64(chip.Bootloader), 2: int64(app.Size)} {
		p := &fw.Parts[i]
		program, err := read(p)
		if err != nil {
			return nil, err
		}
		if err := checkProgram(p.Path, program, chip); err != nil {
			return nil, err
		}
		if p.Bytes > room {
			return nil, fmt.Errorf("%w: %s has %d bytes, there is room for %d", ErrFirmware, p.Path, p.Bytes, room)
		}
		if i == 2 {
			fw.Version = appVersion(program)
		}
	}
	switch {
	case fw.Parts[0].Offset != chip.Bootloader:
		return nil, fmt.Errorf("%w: %s puts the boot loader at %#x, a %s starts at %#x", ErrFirmware, dir, fw.Parts[0].Offset, chip.Family, chip.Bootloader)
	case fw.Parts[2].Offset != app.Offset:
		return nil, fmt.Errorf("%w: %s puts the application at %#x, its partition table at %#x", ErrFirmware, dir, fw.Parts[2].Offset, app.Offset)
	}
	return fw, nil
}

// CSVFile is the partition table in a firmware's sources.
const CSVFile = "partitions.csv"

// OpenTable reads the partition table of a firmware folder: that of its sources, or that of a build.
func OpenTable(dir string, chip *Chip) (Table, error) {
	path := filepath.Join(dir, CSVFile)
	text, err := regular.ReadFile(path, 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		fw, err := OpenFirmware(dir, chip)
		if err != nil {
			return nil, err
		}
		return fw.Table, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFirmware, err)
	}
	t, err := ParseCSV(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// locate finds the three files: as the build says, or by their names.
func locate(dir string, chip *Chip) (*Firmware, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, regular.Absentf("%w: there is no folder %s: %s", ErrFirmware, dir, buildFirst)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFirmware, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is no folder: give the build folder of the firmware, or the folder above it", ErrFirmware, dir)
	}
	for _, at := range []string{dir, filepath.Join(dir, "build")} {
		text, err := regular.ReadFile(filepath.Join(at, argsFile), 1<<20)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFirmware, err)
		}
		return asBuilt(at, text, chip)
	}
	fw := &Firmware{Parts: []Part{
		{Name: "bootloader", Path: filepath.Join(dir, Bootloader), Offset: chip.Bootloader},
		{Name: "partition table", Path: filepath.Join(dir, TableFile), Offset: TableOffset},
		{Name: "firmware", Path: filepath.Join(dir, App)}, // its offset is the table's matter
	}}
	for _, p := range fw.Parts {
		if _, err := os.Stat(p.Path); err != nil {
			return nil, fmt.Errorf("%w: %s holds neither %s nor %s: %s", ErrFirmware, dir, argsFile, filepath.Base(p.Path), buildFirst)
		}
	}
	return fw, nil
}

// asBuilt reads what a build says about its parts.
func asBuilt(dir string, text []byte, chip *Chip) (*Firmware, error) {
	type file struct{ Offset, File, Encrypted string }
	var args struct {
		Bootloader file
		App        file
		Table      file                  `json:"partition-table"`
		Extra      struct{ Chip string } `json:"extra_esptool_args"`
	}
	path := filepath.Join(dir, argsFile)
	if err := json.Unmarshal(text, &args); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFirmware, path, err)
	}
	if args.Extra.Chip != "" && args.Extra.Chip != chip.Name {
		return nil, fmt.Errorf("%w: %s is %w: built for the %s, not for the %s: idf.py set-target %s", ErrFirmware, path, ErrChip, args.Extra.Chip, chip.Name, chip.Name)
	}
	fw := new(Firmware)
	for _, p := range []struct {
		key, name string
		file      file
	}{{"bootloader", "bootloader", args.Bootloader}, {"partition-table", "partition table", args.Table}, {"app", "firmware", args.App}} {
		offset, err := strconv.ParseUint(p.file.Offset, 0, 32)
		if err != nil || p.file.File == "" {
			return nil, fmt.Errorf("%w: %s names no offset and file of the %s: was it written by idf.py build?", ErrFirmware, path, p.key)
		}
		if p.file.Encrypted == "true" {
			return nil, fmt.Errorf("%w: %s asks for an encrypted %s, which is not supported: use idf.py flash", ErrFirmware, path, p.key)
		}
		fw.Parts = append(fw.Parts, Part{Name: p.name, Path: filepath.Join(dir, filepath.FromSlash(p.file.File)), Offset: uint32(offset)})
	}
	return fw, nil
}

// read reads a part's file and notes its size.
func read(p *Part) ([]byte, error) {
	b, err := regular.ReadFile(p.Path, maxFlash)
	if errors.Is(err, os.ErrNotExist) {
		return nil, regular.Absentf("%w: %s: there is no %s, of which the build tells: let idf.py build come to its end", ErrFirmware, p.Name, p.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFirmware, p.Name, err)
	}
	p.Bytes = int64(len(b))
	return b, nil
}

// The header of a program: magic, segments, ..., at 12 the chip; 24 bytes, then a segment's header of 8. The first
// segment of an application starts with its description: magic, ..., at 16 a version of 32 bytes.
const (
	programMagic  = 0xE9
	programChip   = 12
	programHeader = 24
	descriptionAt = programHeader + 8
	versionAt     = descriptionAt + 16
	versionBytes  = 32
	description   = 0xABCD5432
)

func checkProgram(path string, b []byte, chip *Chip) error {
	if len(b) < programHeader || b[0] != programMagic {
		return fmt.Errorf("%w: %s is no program for a chip of this family", ErrFirmware, path)
	}
	if id := binary.LittleEndian.Uint16(b[programChip:]); id != chip.ID {
		return fmt.Errorf("%w: %s is %w: made for the chip of number %d, the %s is %d", ErrFirmware, path, ErrChip, id, chip.Family, chip.ID)
	}
	return nil
}

// appVersion is what an application says of itself.
func appVersion(b []byte) string {
	if len(b) < versionAt+versionBytes || binary.LittleEndian.Uint32(b[descriptionAt:]) != description {
		return ""
	}
	version, _, _ := strings.Cut(string(b[versionAt:versionAt+versionBytes]), "\x00")
	if !printable(version) {
		return ""
	}
	return version
}
