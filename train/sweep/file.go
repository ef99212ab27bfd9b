package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/train"
)

// kind is what messages call the file.
const kind = "file of a sweep"

// DefaultStories is how many held-out stories are scored where the file does not say it, as by `chiplm eval bpb`.
const DefaultStories = 5000

// Study is the file of a sweep, resolved.
type Study struct {
	Name     string
	Corpus   string // as it opens; empty: the file names none
	Valid    string // likewise; empty: what belongs to the corpus
	Stories  int    // held-out stories that are scored; 0: all
	Seeds    []int64
	Baseline string // the arm that the others are measured against
	Arms     []Arm  // in the order of the file

	storiesGiven bool // the file has them
}

// Arm is a variant.
type Arm struct {
	Name    string
	Config  *configs.Config // its name and its seed are those of no run
	Teacher string          // an arm before it, whose run of the same seed teaches this one; empty: none

	hash string // of all that decides the weights, but for the seed
}

// Load reads a file. The errors are of type [*configs.Error] where something in a file is wrong.
func Load(path string) (*Study, error) {
	root, err := configs.OpenValue(kind, path)
	if err != nil {
		return nil, err
	}
	return read(root, path)
}

// Parse reads a file from memory. path stands in messages, gives the default for the name, and is what paths in the file
// are relative to.
func Parse(path string, text []byte) (*Study, error) {
	root, err := configs.ParseValue(kind, path, text)
	if err != nil {
		return nil, err
	}
	return read(root, path)
}

// reader reads a file.
type reader struct {
	*Study
	folder    string // of the file
	config    *configs.Value
	overrides []configs.Override
	baseline  *configs.Value
	arms      []*configs.Value
}

func read(root *configs.Value, path string) (*Study, error) {
	r := &reader{Study: &Study{Stories: DefaultStories}, folder: filepath.Dir(path)}
	keys, err := root.Keys("name", "corpus", "valid", "stories", "seeds", "config", "set", "baseline", "arms")
	if err != nil {
		return nil, err
	}
	var name *configs.Value
	for _, v := range keys {
		switch v.Name() {
		case "name":
			name = v
			r.Name, err = v.Text()
		case "corpus":
			r.Corpus, err = r.path(v)
		case "valid":
			r.Valid, err = r.path(v)
		case "stories":
			var n int64
			n, err = v.Integer(0, math.MaxInt32)
			r.Stories, r.storiesGiven = int(n), true
		case "seeds":
			err = r.seeds(v)
		case "config":
			r.config = v
			_, err = v.Text()
		case "set":
			r.overrides, err = override(nil, v)
		case "baseline":
			r.baseline = v
			r.Baseline, err = v.Text()
		case "arms":
			r.arms, err = v.Keys()
		}
		if err != nil {
			return nil, err
		}
	}
	if name == nil {
		r.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if err := configs.CheckName(r.Name); err != nil {
		if name == nil {
			return nil, root.Errorf("give a name: that of the file does not do: %s", err)
		}
		return nil, name.Errorf("%s", err)
	}
	switch {
	case len(r.Seeds) == 0:
		return nil, root.Errorf("missing: seeds; give the seeds of every arm, such as seeds: [1, 2]")
	case len(r.arms) == 0:
		return nil, root.Errorf("missing: arms; give variants by name, such as arms: {combo: {}, plain: {set: {ple_dim: 0}}}")
	}
	for _, v := range r.arms {
		if err := r.arm(v); err != nil {
			return nil, err
		}
	}
	return r.Study, r.checkBaseline()
}

// path reads a path that is relative to the file's folder.
func (r *reader) path(v *configs.Value) (string, error) {
	p, err := v.Text()
	if err != nil || filepath.IsAbs(p) || p == "builtin" || strings.HasPrefix(p, "builtin:") {
		return p, err
	}
	return filepath.Join(r.folder, p), nil
}

func (r *reader) seeds(v *configs.Value) error {
	items, err := v.Items()
	if err != nil {
		return err
	}
	for _, item := range items {
		seed, err := item.Integer(0, math.MaxInt64)
		if err != nil {
			return err
		}
		if slices.Contains(r.Seeds, seed) {
			return item.Errorf("%d is given twice; keep one", seed)
		}
		r.Seeds = append(r.Seeds, seed)
	}
	return nil
}

// override adds the keys under v to overrides.
func override(before []configs.Override, v *configs.Value) ([]configs.Override, error) {
	o, err := v.Override()
	if err != nil {
		return nil, err
	}
	switch {
	case o.Has("train.seed"):
		return nil, v.Errorf("train.seed cannot be set; the seeds of all arms are those of the key seeds")
	case o.Has("name"):
		return nil, v.Errorf("name cannot be set; runs are called by their arm and seed")
	}
	return append(slices.Clip(before), o), nil
}

// arm reads an arm. Those before it are there already.
func (r *reader) arm(v *configs.Value) error {
	arm := Arm{Name: v.Name()}
	if err := configs.CheckName(arm.Name); err != nil {
		return v.NameErrorf("%s", err)
	}
	keys, err := v.Keys("config", "set", "teacher")
	if err != nil {
		return err
	}
	config, overrides := r.config, r.overrides
	var teacher *configs.Value
	for _, key := range keys {
		switch key.Name() {
		case "config":
			config = key
		case "teacher":
			teacher = key
		case "set":
			if overrides, err = override(overrides, key); err != nil {
				return err
			}
		}
	}
	file := train.DefaultConfig
	if config != nil {
		if file, err = config.Text(); err != nil {
			return err
		}
	}
	if arm.Config, err = configs.LoadOver(file, r.folder, overrides...); err != nil {
		var placed *configs.Error
		if !errors.As(err, &placed) && config != nil {
			return config.Wrap(err)
		}
		return fmt.Errorf("arm %s: %w", arm.Name, err)
	}
	arm.hash = armHash(arm.Config)
	switch {
	case teacher != nil:
		if err := r.teacher(&arm, teacher); err != nil {
			return err
		}
	case arm.Config.Train.Distill > 0:
		return v.NameErrorf("train.distill is %g, but it names no teacher: add teacher: with the name of an arm before it, or set train.distill to 0",
			arm.Config.Train.Distill)
	}
	for _, seed := range r.Seeds {
		if err := configs.CheckName(runName(arm.Name, seed)); err != nil {
			return v.NameErrorf("the name is too long to name its runs by: %s", err)
		}
	}
	for _, other := range r.Arms {
		if other.hash == arm.hash {
			return v.NameErrorf("it is the same as %s: no setting that decides the weights differs", other.Name)
		}
	}
	r.Arms = append(r.Arms, arm)
	return nil
}

// teacher gives an arm the teacher that v names.
func (r *reader) teacher(arm *Arm, v *configs.Value) error {
	name, err := v.Text()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(r.Arms, func(a Arm) bool { return a.Name == name })
	if at < 0 {
		if slices.ContainsFunc(r.arms, func(v *configs.Value) bool { return v.Name() == name }) {
			return v.Errorf("%s does not stand before %s; an arm learns from one that stands before it in the file", name, arm.Name)
		}
		if strings.HasPrefix(name, released.Prefix) {
			return v.Errorf("%s is a released model, which teaches a run of chiplm train, but no arm: an arm learns from one before it", name)
		}
		return v.Errorf("no arm before it is called %q; %s", name, r.hint(name))
	}
	cfg, wise := arm.Config, &r.Arms[at]
	switch {
	case cfg.Train.Distill == 0:
		return v.Errorf("train.distill is 0, so %s would teach nothing: set it, such as to 0.5, or leave the teacher out", name)
	case wise.Config.VocabSize != cfg.VocabSize:
		return v.Errorf("%s has a vocab_size of %d, and %s of %d, so its distributions are of other tokens", name, wise.Config.VocabSize, arm.Name, cfg.VocabSize)
	case wise.Config.ContextLength < cfg.ContextLength:
		return v.Errorf("%s has a context_length of %d, shorter than the %d of %s", name, wise.Config.ContextLength, cfg.ContextLength, arm.Name)
	}
	arm.Teacher = name
	sum := sha256.Sum256([]byte(arm.hash + wise.hash))
	arm.hash = hex.EncodeToString(sum[:])
	return nil
}

// hint says what a name that is none of an arm may have been meant to be.
func (r *reader) hint(name string) string {
	var names []string
	for _, a := range r.Arms {
		names = append(names, a.Name)
	}
	switch near := configs.Nearest(name, names); {
	case near != "":
		return "did you mean " + near + "?"
	case len(names) == 0:
		return "it is the first arm"
	}
	return "the arms are " + strings.Join(names, ", ")
}

func (r *reader) checkBaseline() error {
	switch {
	case r.baseline == nil:
		r.Baseline = r.Arms[0].Name
	case !slices.ContainsFunc(r.Arms, func(a Arm) bool { return a.Name == r.Baseline }):
		return r.baseline.Errorf("no arm is called %q; %s", r.Baseline, r.hint(r.Baseline))
	}
	return nil
}

// runName is the name of a run, and of its folder.
func runName(arm string, seed int64) string { return fmt.Sprintf("%s-s%d", arm, seed) }

// armHash is the hash of the settings that decide the weights, but for the seed and a teacher.
func armHash(c *configs.Config) string {
	same := *c
	same.Train.Seed = 0
	return same.TrainHash()
}
