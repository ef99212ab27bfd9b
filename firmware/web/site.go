package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/cost"
)

// ErrNoChip is wrapped where there is nothing for the chip, with the reason.
var ErrNoChip = errors.New("cannot go on the chip")

// file is one that the page may ask for. What takes a while is made when it is asked for.
type file struct {
	name    string // its path under the page
	content func(context.Context) ([]byte, error)
}

// ready is the content of a file that is there.
func ready(b []byte) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return b, nil }
}

// site is all that the page is given.
type site struct {
	page     []file
	models   []*model
	firmware *firmware // nil: none
	virtual  string    // address of a virtual board; "": none
}

// Names of files that are made here.
const (
	pageFile     = "page.json"
	modelsFile   = "models.json"
	firmwareJSON = "firmware.json"
)

// files lists the files of the site.
func (s *site) files() []file {
	out := append([]file{}, s.page...)
	out = append(out, file{modelsFile, s.list}, file{pageFile, func(context.Context) ([]byte, error) { return s.about(nil) }})
	for _, m := range s.models {
		dir := "models/" + m.name
		of := func(pick func(*chip) []byte) func(context.Context) ([]byte, error) {
			return func(ctx context.Context) ([]byte, error) { return m.ofChip(ctx, pick) }
		}
		out = append(out,
			file{dir + "/model.json", func(ctx context.Context) ([]byte, error) { return m.complete(ctx) }},
			file{dir + "/" + export.ImageFile, ready(m.image)},
			file{dir + "/" + targetName + "/" + export.ImageFile, of(func(c *chip) []byte { return c.image })},
			file{dir + "/" + targetName + "/" + export.ManifestFile, of(func(c *chip) []byte { return c.manifest })},
			file{dir + "/" + targetName + "/" + export.PlacementJSON, of(func(c *chip) []byte { return c.placement })})
	}
	out = append(out, file{firmwareJSON, func(context.Context) ([]byte, error) { return asJSON(s.firmware) }})
	if s.firmware != nil {
		for _, f := range s.firmware.Files {
			out = append(out, file{f.URL, ready(f.content)})
		}
	}
	return out
}

// about is page.json; files are those of a folder that was written.
func (s *site) about(files map[string]released.File) ([]byte, error) {
	a := about{Kind: pageKind, Program: checkpoints.ProgramVersion(), Files: files}
	if s.virtual != "" {
		a.Virtual = &s.virtual
	}
	return asJSON(a)
}

// pageKind marks a folder as a page of ours.
const pageKind = "chiplm page"

type about struct {
	Kind    string                   `json:"kind"`
	Program string                   `json:"program"`
	Virtual *string                  `json:"virtual"`
	Files   map[string]released.File `json:"files,omitempty"`
}

// entry is a model as the page is told of it.
type entry struct {
	Name    string            `json:"name"`
	Source  string            `json:"source"`
	Facts   any               `json:"facts"`
	Image   string            `json:"image"`
	SHA256  string            `json:"sha256"`
	Bytes   int               `json:"bytes"`
	Digest  digest            `json:"digest"`
	Board   map[string]*board `json:"board"` // nil: not made yet, or refused
	Cost    *cost.Report      `json:"cost"`
	Refused string            `json:"refused,omitempty"`
}

// board is what goes on a chip.
type board struct {
	Image     string `json:"image"`
	SHA256    string `json:"sha256"`
	Bytes     int    `json:"bytes"`
	Offset    uint32 `json:"offset"`
	Manifest  string `json:"manifest,omitempty"`
	Placement string `json:"placement,omitempty"`
}

// list is models.json as of now. It starts what is not made yet.
func (s *site) list(context.Context) ([]byte, error) {
	list := []*entry{}
	for _, m := range s.models {
		c, _, err := m.chip.now()
		list = append(list, m.entry(c, err))
		m.chip.start()
	}
	return asJSON(list)
}

// entry tells of a model, and of what goes on the chip, which may be nil.
func (m *model) entry(c *chip, err error) *entry {
	dir := "models/" + m.name
	e := &entry{Name: m.name, Source: m.source, Facts: m.facts, Image: path.Join(dir, export.ImageFile), SHA256: hashOf(m.image), Bytes: len(m.image), Digest: m.digest}
	switch {
	case err != nil:
		e.Refused = err.Error()
	case c != nil:
		dir = path.Join(dir, targetName)
		b := &board{Image: path.Join(dir, export.ImageFile), SHA256: hashOf(c.image), Bytes: len(c.image), Offset: c.offset}
		if c.manifest != nil {
			b.Manifest = path.Join(dir, export.ManifestFile)
		}
		if c.placement != nil {
			b.Placement = path.Join(dir, export.PlacementJSON)
		}
		e.Board, e.Cost = map[string]*board{targetName: b}, c.cost
	}
	return e
}

// complete is model.json: the entry when all of it is made.
func (m *model) complete(ctx context.Context) ([]byte, error) {
	c, err := m.chip.get(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return asJSON(m.entry(c, err))
}

// ofChip is a file of what goes on the chip.
func (m *model) ofChip(ctx context.Context, pick func(*chip) []byte) ([]byte, error) {
	c, err := m.chip.get(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", m.name, ErrNoChip, err)
	}
	if b := pick(c); b != nil {
		return b, nil
	}
	return nil, regular.Absentf("%s was given as an image alone", m.name)
}

func asJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	err := jsonout.Write(&b, v)
	return b.Bytes(), err
}
