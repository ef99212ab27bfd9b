package web

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/cost"
	"github.com/chiplm/chiplm/firmware/host/flash"
)

// chip is a model as it goes on the chip.
type chip struct {
	path                string // of the image
	offset              uint32
	image               []byte
	manifest, placement []byte // of its export; nil: it is an image alone
	cost                *cost.Report
}

// export makes the image for the chip as chiplm export does, in a folder of this program.
func (o *opener) export(m *model, from *export.Source) (*chip, error) {
	o.making.Lock()
	defer o.making.Unlock()
	if err := o.life.Err(); err != nil {
		return nil, err
	}
	b, err := from.Build(o.life, cost.Options(o.target))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.work, m.name+"-"+o.target.Name)
	if _, err := from.Write(o.life, dir, b); err != nil {
		return nil, err
	}
	s, err := cost.Of(from, b, o.target.Profile(""))
	if err != nil {
		return nil, err
	}
	c, err := o.read(dir, filepath.Join(dir, export.ImageFile), s)
	if err != nil {
		return nil, &within{err, o.work + string(filepath.Separator)}
	}
	return c, nil
}

// within is an error whose text leaves out a folder of this program's own, which means nothing to users.
type within struct {
	error
	folder string
}

func (w *within) Error() string { return strings.ReplaceAll(w.error.Error(), w.folder, "") }
func (w *within) Unwrap() error { return w.error }

// take takes an image as it is: in a folder that chiplm export wrote, or alone.
func (o *opener) take(name, path string) (*chip, error) {
	s, err := cost.Find(o.life, o.root, name, nil, o.target, o.target.Profile(""))
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if filepath.Base(path) != export.ImageFile || !isExport(dir) {
		dir = ""
	}
	return o.read(dir, path, s)
}

// isExport says whether a folder is one that chiplm export wrote.
func isExport(dir string) bool {
	_, err := export.ReadManifest(dir)
	return err == nil
}

// read reads what goes on the chip, after all the checks of chiplm flash. dir is the export's; "": an image alone.
func (o *opener) read(dir, path string, s *cost.Subject) (*chip, error) {
	what := path
	if dir != "" {
		what = dir
	}
	plan, err := flash.NewPlan(flash.Options{Path: what, Firmware: o.firmware, ModelOnly: o.firmware == ""})
	if err != nil {
		return nil, err
	}
	c := &chip{path: path, offset: plan.Model().Offset}
	if c.image, err = regular.ReadFile(path, mostImage); err != nil {
		return nil, err
	}
	if hashOf(c.image) != plan.Model().SHA256 {
		return nil, fmt.Errorf("%s changed while it was read: start again", path)
	}
	if dir != "" {
		for name, into := range map[string]*[]byte{export.ManifestFile: &c.manifest, export.PlacementJSON: &c.placement} {
			if *into, err = regular.ReadFile(filepath.Join(dir, name), mostText); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
	}
	if c.cost, err = s.Report(0, s.Config.ContextLength-1); err != nil {
		return nil, err
	}
	return c, nil
}

// mostText is the largest text of an export that is served, in bytes.
const mostText = 1 << 24
