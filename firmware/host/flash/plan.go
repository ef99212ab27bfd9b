package flash

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/parts"
	"github.com/chiplm/chiplm/export/targets"
)

// ErrFit is wrapped when a model has no room on the chip.
var ErrFit = errors.New("does not fit")

// ErrDamaged is wrapped when an export is not what it was when it was written.
var ErrDamaged = errors.New("damaged export")

// Options say what to flash.
type Options struct {
	Path      string // an export folder, or an image
	Firmware  string // folder of a build; "": what the export carries
	Target    string // name or file; "": that of the export, and esp32s3 for an image
	ModelOnly bool   // no firmware, even if there is one
}

// Part is a file to be written.
type Part struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Offset uint32 `json:"offset"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Plan is what goes where.
type Plan struct {
	Chip      string   `json:"chip"`
	Parts     []Part   `json:"parts"` // by offset, the model last
	ModelOnly bool     `json:"model_only"`
	Notes     []string `json:"notes,omitempty"`
	assumed   string   // whose offset a model alone has until a board is asked
}

// Model is the part of the model.
func (p *Plan) Model() *Part { return &p.Parts[len(p.Parts)-1] }

// NewPlan decides what goes where and checks all of it. It writes nothing. Errors wrap [ErrFit], [ErrDamaged],
// [parts.ErrChip], [parts.ErrFirmware], [parts.ErrTable], [export.ErrFolder] or those of package image.
func NewPlan(opt Options) (*Plan, error) {
	if err := export.Exported(opt.Path); err != nil {
		return nil, err
	}
	info, err := os.Stat(opt.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, regular.Absentf("%s: there is no such export folder or image; chiplm export --target esp32s3 makes one", opt.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("an export folder or an image is wanted: %w", err)
	}
	path, folder := opt.Path, ""
	var m *export.Manifest
	if info.IsDir() {
		folder, path = opt.Path, filepath.Join(opt.Path, export.ImageFile)
		if m, err = export.ReadManifest(folder); err != nil {
			return nil, err
		}
	}
	target, err := targetOf(opt, m)
	if err != nil {
		return nil, err
	}
	if target.Flash == nil || target.Flash.Chip == "" {
		return nil, fmt.Errorf("%s is %w: it was made for the target %s, which has no chip to flash: chiplm export --target esp32s3", opt.Path, parts.ErrChip, target.Name)
	}
	chip, err := parts.ChipNamed(target.Flash.Chip)
	if err != nil {
		return nil, err
	}
	model, err := checkModel(path, target)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Chip: chip.Name, ModelOnly: true, assumed: "the target " + target.Name}
	place := parts.Partition{Name: parts.ModelPartition, Offset: uint32(target.Flash.ModelOffset), Size: uint32(target.Flash.ModelBytes)}
	carried := m != nil && m.Firmware != ""
	if dir := firmwareOf(opt, folder, carried); dir != "" {
		table, err := plan.firmware(dir, chip, opt.ModelOnly)
		if err != nil {
			return nil, err
		}
		p := table.Find(parts.ModelPartition)
		if p == nil {
			return nil, fmt.Errorf("%w: the partition table of %s has no partition %q (%s)", parts.ErrFirmware, dir, parts.ModelPartition, table.Names())
		}
		place, plan.assumed = *p, "the partition table of "+dir
	} else if !opt.ModelOnly {
		plan.Notes = append(plan.Notes, "no firmware is given (--firmware) or in the export, so only the model is written")
	}
	plan.Parts = append(plan.Parts, *model)
	if err := plan.put(&place); err != nil {
		return nil, err
	}
	return plan, plan.hash(folder, m)
}

// firmware adds the parts of a build, unless the model goes alone, and gives its partition table.
func (p *Plan) firmware(dir string, chip *parts.Chip, modelOnly bool) (parts.Table, error) {
	if modelOnly {
		return parts.OpenTable(dir, chip)
	}
	fw, err := parts.OpenFirmware(dir, chip)
	if err != nil {
		return nil, err
	}
	p.ModelOnly = false
	for _, x := range fw.Parts {
		p.Parts = append(p.Parts, Part{Name: x.Name, Path: x.Path, Offset: x.Offset, Bytes: x.Bytes})
	}
	return fw.Table, nil
}

// put gives the model its place.
func (p *Plan) put(at *parts.Partition) error {
	model := p.Model()
	if model.Bytes > int64(at.Size) {
		return fmt.Errorf("%s %w: it has %s bytes, the partition %s of the board %s: %s too many; choose a smaller model, or a partition table with more room",
			model.Path, ErrFit, digits.Comma(model.Bytes), at.Name, digits.Comma(int64(at.Size)), digits.Comma(model.Bytes-int64(at.Size)))
	}
	model.Offset = at.Offset
	return nil
}

// targetOf is the target that an export was made for.
func targetOf(opt Options, m *export.Manifest) (*targets.Target, error) {
	name := opt.Target
	switch {
	case name == "" && m != nil:
		name = m.Target
	case name == "":
		name = "esp32s3"
	}
	t, err := targets.Load(name)
	if err != nil {
		if opt.Target == "" {
			return nil, fmt.Errorf("%s was made for the target %s: give its file with --target: %w", opt.Path, name, err)
		}
		return nil, err
	}
	if m != nil && m.Target != t.Name {
		return nil, fmt.Errorf("%s is %w: it was made for the target %s, not for %s: chiplm export --target %s", opt.Path, parts.ErrChip, m.Target, t.Name, name)
	}
	return t, nil
}

// firmwareOf is the folder that firmware, or its partition table, is taken from; "" if there is none.
func firmwareOf(opt Options, folder string, carried bool) string {
	if opt.Firmware != "" {
		return opt.Firmware
	}
	if carried {
		return folder
	}
	return ""
}

// checkModel reads an image and holds its placement against the target's memories.
func checkModel(path string, t *targets.Target) (*Part, error) {
	f, err := image.Open(path)
	if err != nil {
		return nil, err
	}
	var want [image.Tiers]int64
	for i := range f.Tensors {
		want[f.Tensors[i].Tier] += f.Tensors[i].StoredBytes()
	}
	for tier, n := range want {
		mem := t.Memory(image.Tier(tier))
		if n > 0 && (mem == nil || n > mem.Usable) {
			return nil, fmt.Errorf("%s is %w: its placement wants %s bytes of %s, more than the target %s has: chiplm export --target %s",
				path, parts.ErrChip, digits.Comma(n), image.Tier(tier), t.Name, t.Name)
		}
	}
	return &Part{Name: parts.ModelPartition, Path: path, Bytes: f.Bytes}, nil
}

// hash notes the hash of each part, and holds those of an export against its manifest.
func (p *Plan) hash(folder string, m *export.Manifest) error {
	for i := range p.Parts {
		part := &p.Parts[i]
		f, err := regular.Open(part.Path)
		if err != nil {
			return err
		}
		h := sha256.New()
		n, err := io.Copy(h, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", part.Path, err)
		}
		part.Bytes, part.SHA256 = n, hex.EncodeToString(h.Sum(nil))
		if m == nil || filepath.Dir(part.Path) != filepath.Clean(folder) {
			continue
		}
		if want, ok := m.Files[filepath.Base(part.Path)]; !ok || want.SHA256 != part.SHA256 {
			return fmt.Errorf("%w: %s is not the file that chiplm export wrote: export again", ErrDamaged, part.Path)
		}
	}
	return nil
}

// places are the offsets and files as esptool takes them.
func (p *Plan) places() []string {
	var out []string
	for _, part := range p.Parts {
		path := part.Path
		if strings.HasPrefix(path, "-") {
			path = "." + string(filepath.Separator) + path
		}
		out = append(out, fmt.Sprintf("%#x", part.Offset), path)
	}
	return out
}
