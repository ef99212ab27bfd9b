package export

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/export/targets"
)

// Flasher is what a flasher that runs in a browser reads: which file goes where on which chip. Paths are relative to it.
type Flasher struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// AskErase lets the flasher ask before it erases the whole chip. Otherwise it always would, and a model without
	// firmware would be alone on the chip.
	AskErase bool           `json:"new_install_prompt_erase"`
	Builds   []FlasherBuild `json:"builds"`
}

// FlasherBuild is the list of files for a family of chips.
type FlasherBuild struct {
	ChipFamily string        `json:"chipFamily"`
	Parts      []FlasherPart `json:"parts"`
}

// FlasherPart is a file and its place in flash.
type FlasherPart struct {
	Path   string `json:"path"`
	Offset uint32 `json:"offset"`
}

// chipOf is the chip of a target that flashing programs know; nil if the target names none.
func chipOf(t *targets.Target) (*parts.Chip, error) {
	if t.Flash == nil || t.Flash.Chip == "" {
		return nil, nil
	}
	chip, err := parts.ChipNamed(t.Flash.Chip)
	if err != nil {
		return nil, fmt.Errorf("the target %s: flash.chip: %w", t.Name, err)
	}
	return chip, nil
}

// firmwareFor reads the firmware that an export is to carry, none without a folder, and checks that its models lie where
// the target says.
func firmwareFor(dir string, t *targets.Target) (*parts.Firmware, error) {
	chip, err := chipOf(t)
	switch {
	case err != nil || dir == "":
		return nil, err
	case chip == nil:
		return nil, usage.Errorf("the target %s has no chip to flash (flash.chip), so it takes no --firmware", t.Name)
	}
	fw, err := parts.OpenFirmware(dir, chip)
	if err != nil {
		return nil, err
	}
	model := fw.Table.Find(parts.ModelPartition)
	switch {
	case model == nil:
		return nil, fmt.Errorf("%s: its partition table has no partition %q (%s): is it chiplm's firmware?", dir, parts.ModelPartition, fw.Table.Names())
	case int64(model.Offset) != t.Flash.ModelOffset || int64(model.Size) != t.Flash.ModelBytes:
		return nil, fmt.Errorf("%s has its model at %#x (%s bytes), the target %s at %#x (%s bytes): change flash.model_offset and flash.model_bytes of a target file of your own, or the firmware's partitions.csv",
			dir, model.Offset, digits.Comma(int64(model.Size)), t.Name, t.Flash.ModelOffset, digits.Comma(t.Flash.ModelBytes))
	}
	return fw, nil
}

// fillFlasher writes what a browser needs, and the firmware's files if the export carries them. A target without a chip
// that can be flashed gets none of it.
func fillFlasher(dir string, m *Manifest, b *Built) error {
	t := b.Target
	chip, err := chipOf(t)
	if chip == nil {
		return err
	}
	f := &Flasher{Name: m.Model, Version: "step " + digits.Comma(m.Step), AskErase: true, Builds: []FlasherBuild{{ChipFamily: chip.Family}}}
	list := &f.Builds[0].Parts
	if b.Firmware != nil {
		m.Firmware = cmp.Or(b.Firmware.Version, "unknown")
		f.Version += ", firmware " + m.Firmware
		for i, name := range []string{parts.Bootloader, parts.TableFile, parts.App} {
			p := &b.Firmware.Parts[i]
			if err := intoFile(filepath.Join(dir, name), func(w io.Writer) error { return copyFile(w, p.Path) }); err != nil {
				return err
			}
			*list = append(*list, FlasherPart{name, p.Offset})
		}
	}
	*list = append(*list, FlasherPart{ImageFile, uint32(t.Flash.ModelOffset)})
	return intoFile(filepath.Join(dir, FlasherFile), func(w io.Writer) error { return jsonout.Write(w, f) })
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
