package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/targets"
	"github.com/chiplm/chiplm/firmware/host"
)

// targetName is the chip that the page puts models on.
const targetName = "esp32s3"

// mostImage is the largest image that is served, in bytes.
const mostImage = 1 << 30

// model is one that the page offers.
type model struct {
	name   string // in URLs and for people
	source string // what was named
	path   string // where it lies; of a released model its name, with the prefix
	facts  any    // of a released model its own
	image  []byte // for the page to run
	digest digest
	chip   *made[*chip]
}

// digest is what request D n of the protocol gives.
type digest struct {
	N     int    `json:"n"`
	Value string `json:"value"`
}

// facts are what is known of a model that was not released, under the keys of one that was.
type facts struct {
	Name            string `json:"name"`
	Parameters      int    `json:"parameters"`
	VocabSize       int    `json:"vocab_size"`
	ContextLength   int    `json:"context_length"`
	Weights         string `json:"weights"`
	ImageBytes      int64  `json:"image_bytes"`
	BytesPerToken   int64  `json:"bytes_read_per_token"`
	Digest          string `json:"golden_digest"`
	ModelSHA256     string `json:"model_sha256"`
	ConfigSHA256    string `json:"config_sha256"`
	TokenizerSHA256 string `json:"tokenizer_sha256"`
}

// opener opens models.
type opener struct {
	life     context.Context // ends with the program; what takes a while is made as long
	root     string          // of the runs
	work     string          // an own folder for images that are made
	firmware string          // folder of the firmware that tells where models lie; "": as the target says
	target   *targets.Target
	notes    io.Writer
	making   sync.Mutex // one image at a time: the browser wants the processor too
}

// open opens what users name; without a name, the released models.
func (o *opener) open(names []string) ([]*model, error) {
	if len(names) == 0 {
		s := released.From(o.life)
		for _, name := range s.Names() {
			names = append(names, released.Prefix+name)
		}
		if at := slices.Index(names, released.Prefix+s.Default()); at > 0 {
			names[0], names[at] = names[at], names[0]
		}
	}
	var all []*model
	for _, name := range names {
		m, err := o.openOne(name)
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(all, func(other *model) bool { return other.path == m.path }); at >= 0 {
			fmt.Fprintf(o.notes, "note: %s is there already, as %s\n", name, all[at].name)
			continue
		}
		m.name = unique(m.name, all)
		all = append(all, m)
	}
	return all, nil
}

func (o *opener) openOne(name string) (*model, error) {
	if at := export.ImageAt(name); filepath.Ext(at) == ".clm" && !released.IsFolder(name) {
		return o.fromImage(name, at)
	}
	if isExport(name) {
		return nil, fmt.Errorf("%s is an export without its %s: export again, or name the model that it was made of", name, export.ImageFile)
	}
	from, err := export.OpenSource(o.life, o.root, name, o.notes)
	if err != nil {
		return nil, err
	}
	from.TellCheckpoint(name, o.notes)
	m := &model{name: from.Name, source: from.Path, path: absolute(from.Path)}
	m.chip = newMade(func() (*chip, error) { return o.export(m, from) })
	if r := from.Released; r != nil {
		m.image, m.facts = r.Image, &r.Facts
		return m, m.check(nil)
	}
	fmt.Fprintf(o.notes, "making the image of %s for the browser\n", from.Name)
	built, err := from.Build(o.life, export.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, n := range built.Notes {
		fmt.Fprintf(o.notes, "note: %s: %s\n", from.Name, n)
	}
	m.image = built.Bytes
	known := new(facts)
	m.facts = known
	return m, m.check(known)
}

// fromImage opens an image, or the one of an export's folder.
func (o *opener) fromImage(name, path string) (*model, error) {
	b, err := regular.ReadFile(path, mostImage)
	if err != nil {
		return nil, err
	}
	called := strings.TrimSuffix(filepath.Base(path), ".clm")
	if filepath.Base(path) == export.ImageFile { // as in every export: the folder's name says more
		called = filepath.Base(filepath.Dir(absolute(path)))
	}
	known := new(facts)
	m := &model{name: called, source: name, path: absolute(path), image: b, facts: known}
	m.chip = newMade(func() (*chip, error) { return o.take(name, path) })
	if err := m.check(known); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// check runs the engine on the image, and notes what is known of the model in known, unless that is nil.
func (m *model) check(known *facts) error {
	im, err := engine.NewImage(m.image)
	if err != nil {
		return err
	}
	defer im.Close()
	sizes := im.Model()
	m.digest.N = min(host.DigestTokens, sizes.ContextLength)
	d, err := host.Digest(im, m.digest.N)
	if err != nil {
		return err
	}
	m.digest.Value = fmt.Sprintf("0x%016x", uint64(d))
	if known == nil {
		return nil
	}
	text := im.Config()
	c, err := configs.Parse(m.source, text)
	if err != nil {
		return err
	}
	*known = facts{Name: c.Name, Parameters: c.Parameters(), VocabSize: c.VocabSize, ContextLength: c.ContextLength,
		Weights: export.WeightsText(c), ImageBytes: int64(len(m.image)), BytesPerToken: c.Budget().Total.TokenRead,
		Digest: fmt.Sprintf("%016x", uint64(im.Golden().Digest)), ModelSHA256: hex.EncodeToString(sizes.ModelSHA256[:]),
		ConfigSHA256: hashOf(text), TokenizerSHA256: hex.EncodeToString(sizes.TokenizerSHA256[:])}
	return nil
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// unique makes a name fit for URLs and file names, and another than those of models that are there.
func unique(name string, there []*model) string {
	name = strings.TrimLeft(notInNames.ReplaceAllString(name, "-"), ".-")
	if name == "" {
		name = "model"
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(there, func(m *model) bool { return strings.EqualFold(m.name, name) })
	}
	out := name
	for n := 2; taken(out); n++ {
		out = fmt.Sprintf("%s-%d", name, n)
	}
	return out
}

// absolute is a path in the one way in which it can be compared.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// hashOf is the SHA-256 of bytes.
func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
