package checkpoints

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/checkpoints/safetensors"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/regular"
)

// Load reads a checkpoint whole. path is a checkpoint's folder, or a run's: then the newest complete one is taken, and
// Notes says which newer ones were passed over. A damaged one is an error, never passed over in silence.
func Load(path string) (*Checkpoint, error) { return load(path, true) }

// LoadModel reads a checkpoint without the optimiser's moments, which are two thirds of it.
func LoadModel(path string) (*Checkpoint, error) { return load(path, false) }

func load(path string, moments bool) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, regular.Absentf("%s: there is no such folder; name a checkpoint or a run, such as %s/combo", path, DefaultRoot)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if !info.IsDir() {
		if filepath.Ext(path) == ".clm" {
			return nil, fmt.Errorf("%s: %w: it is an image, which holds no weights as they were trained; name the run or checkpoint that it was exported from",
				path, ErrNone)
		}
		if dir := filepath.Dir(path); isCheckpoint(dir) {
			return nil, fmt.Errorf("%s: %w: it is a file; name the checkpoint's folder (%s)", path, ErrNone, dir)
		}
		return nil, fmt.Errorf("%s: %w: it is a file, and no image (.clm) either; name a run or a checkpoint, or an image where one is taken", path, ErrNone)
	}
	if isCheckpoint(path) {
		c, err := read(path, moments)
		if err != nil {
			return nil, withRemedy(filepath.Clean(path), err)
		}
		return c, nil
	}
	// While we read, a training process may save a newer checkpoint and clear one away under us: then what we saw of the
	// run has changed, and is looked at again.
	for try := 0; ; try++ {
		before, _ := os.ReadDir(path)
		c, err := loadNewest(path, moments)
		if err == nil {
			return c, nil
		}
		after, _ := os.ReadDir(path)
		same := slices.EqualFunc(before, after, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() })
		if same || try == 50 {
			return nil, err
		}
	}
}

// loadNewest reads the newest complete checkpoint of a run.
func loadNewest(run string, moments bool) (*Checkpoint, error) {
	newest, notes, err := newestOf(run)
	if err != nil {
		return nil, err
	}
	c, err := read(newest.dir, moments)
	if err != nil {
		return nil, withRemedy(newest.dir, err)
	}
	c.Notes = append(c.Notes, notes...)
	return c, nil
}

// isCheckpoint tells a checkpoint from a run by its files, so that released models may have any name.
func isCheckpoint(dir string) bool {
	if stepForm.MatchString(filepath.Base(dir)) {
		return true
	}
	for _, name := range []string{DoneFile, ModelFile, StateFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

func read(dir string, moments bool) (*Checkpoint, error) {
	done, err := readDone(dir)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Dir: dir, ModelSHA256: done[ModelFile]}
	text, err := readChecked(dir, StateFile, done)
	if err != nil {
		return nil, err
	}
	if c.State, err = decodeState(text); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if text, err = readChecked(dir, ConfigFile, done); err != nil {
		return nil, err
	}
	if c.Config, err = configs.Parse(filepath.Join(dir, ConfigFile), text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if c.Tokenizer, err = readChecked(dir, TokenizerFile, done); err != nil {
		return nil, err
	}
	if c.State.ConfigHash != done[ConfigFile] || c.State.TokenizerHash != done[TokenizerFile] {
		return nil, fmt.Errorf("%s: %w: %s is of another configuration or tokenizer than the one beside it", dir, ErrDamaged, StateFile)
	}
	model, err := readTensors(dir, ModelFile, done)
	if err != nil {
		return nil, err
	}
	if c.Tensors, err = matchModel(c.Config, model); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", dir, ModelFile, err)
	}
	if done[MomentsFile] != "" && moments {
		stored, err := readTensors(dir, MomentsFile, done)
		if err != nil {
			return nil, err
		}
		if c.Moments, err = matchMoments(c.Config, stored); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", dir, MomentsFile, err)
		}
	}
	return c, nil
}

func damaged(dir, name, what string) error {
	return fmt.Errorf("%s: %w: %s %s", dir, ErrDamaged, name, what)
}

// notAFile words the errors of opening that say that a file is missing, or a folder, a pipe or a device.
func notAFile(dir, name string, err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return damaged(dir, name, "is missing")
	case errors.Is(err, regular.ErrKind) && errors.As(err, &path):
		return damaged(dir, name, "is "+path.Err.Error())
	}
	return nil
}

// readChecked reads a small file and compares its hash.
func readChecked(dir, name string, done digests) ([]byte, error) {
	text, err := readSmall(filepath.Join(dir, name), maxSmallFile)
	if err := notAFile(dir, name, err); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != done[name] {
		return nil, damaged(dir, name, "is not the file that was saved (its SHA-256 differs)")
	}
	return text, nil
}

// readTensors reads a safetensors file once, hashing as it goes. A file that was changed is reported as damaged, whatever
// the change did to its header.
func readTensors(dir, name string, done digests) ([]safetensors.Tensor, error) {
	f, err := regular.Open(filepath.Join(dir, name))
	if err := notAFile(dir, name, err); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	hash := sha256.New()
	tensors, parseErr := safetensors.Read(io.TeeReader(f, hash), info.Size())
	if parseErr != nil {
		if _, err := io.Copy(hash, f); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if hex.EncodeToString(hash.Sum(nil)) != done[name] {
		return nil, damaged(dir, name, "is not the file that was saved (its SHA-256 differs)")
	}
	if parseErr != nil {
		return nil, fmt.Errorf("%s: %w: %s: %w", dir, ErrFormat, name, parseErr)
	}
	return tensors, nil
}

// matchModel holds the stored tensors against the configuration.
func matchModel(c *configs.Config, list []safetensors.Tensor) (map[string][]float32, error) {
	want := map[string][]int{}
	for _, t := range c.Tensors() {
		want[t.Name] = t.Shape
	}
	got := map[string][]float32{}
	for _, t := range list {
		shape, ok := want[t.Name]
		if !ok {
			return nil, fmt.Errorf("%w: it has %q, which this configuration does not; is the checkpoint another model's?", ErrTensors, t.Name)
		}
		if !slices.Equal(shape, t.Shape) {
			return nil, fmt.Errorf("%w: %s is %v, the configuration says %v; is the checkpoint another model's?", ErrTensors, t.Name, t.Shape, shape)
		}
		got[t.Name] = t.Data
	}
	for _, t := range c.Tensors() {
		if got[t.Name] == nil {
			return nil, fmt.Errorf("%w: %s is missing; is the checkpoint another model's?", ErrTensors, t.Name)
		}
	}
	return got, nil
}

// matchMoments holds the optimiser's state against the configuration: each entry is <moment>.<tensor>, shaped like the
// tensor or with one value for each of its rows, and every tensor has at least one.
func matchMoments(c *configs.Config, list []safetensors.Tensor) (map[string][]float32, error) {
	want := map[string]configs.Tensor{}
	for _, t := range c.Tensors() {
		want[t.Name] = t
	}
	got, moved := map[string][]float32{}, map[string]bool{}
	for _, t := range list {
		moment, name, ok := strings.Cut(t.Name, ".")
		tensor, known := want[name]
		if !ok || moment == "" || !known {
			return nil, fmt.Errorf("%w: the optimiser has a moment %q, which belongs to no tensor", ErrTensors, t.Name)
		}
		if !slices.Equal(tensor.Shape, t.Shape) && !slices.Equal([]int{tensor.Rows()}, t.Shape) {
			return nil, fmt.Errorf("%w: the optimiser's %s is %v, the tensor %v", ErrTensors, t.Name, t.Shape, tensor.Shape)
		}
		got[t.Name], moved[name] = t.Data, true
	}
	for _, t := range c.Tensors() {
		if len(list) > 0 && !moved[t.Name] {
			return nil, fmt.Errorf("%w: the optimiser has no moment of %s", ErrTensors, t.Name)
		}
	}
	return got, nil
}
