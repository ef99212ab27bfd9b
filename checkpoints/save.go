package checkpoints

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chiplm/chiplm/checkpoints/safetensors"
)

// Save writes a checkpoint into a run, making the run's folder if need be, and then clears away all but the newest keep
// complete checkpoints (keep < 1 keeps all). It fills in c.Dir, c.ModelSHA256 and the parts of c.State that
// are Save's. Power may fail and the process may die at any moment: the run then holds its earlier checkpoints whole, and
// the new one either whole or not at all.
//
// When dir is not empty the checkpoint is safe, and an error tells that clearing away failed. Saves into one run wait
// for one another.
func Save(runDir string, c *Checkpoint, keep int) (dir string, err error) {
	return save(realDisk{}, runDir, c, keep)
}

func save(d disk, runDir string, c *Checkpoint, keep int) (string, error) {
	if err := c.Config.Validate(); err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	model, moments, err := tensorsOf(c)
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	configText, err := c.Config.YAML()
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	if err := d.MkdirAll(runDir); err != nil {
		return "", fmt.Errorf("run folder: %w", err)
	}
	lock, err := flock(filepath.Join(runDir, saveLock), true)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	clearDead(d, runDir) // first, for the room; what cannot be removed now is tried again by the next save
	before, err := list(runDir)
	if err != nil {
		return "", fmt.Errorf("run folder: %w", err)
	}

	state := c.State
	state.Version = stateVersion
	state.SavedAt = time.Now().UTC()
	state.ConfigHash, state.TokenizerHash = hashOf(configText), hashOf(c.Tokenizer)
	state.Serial = 1
	for _, s := range before {
		if s.state.Serial >= state.Serial {
			state.Serial = s.state.Serial + 1
		}
	}
	stateText, err := encodeState(state)
	if err != nil {
		return "", err
	}
	final, err := freeName(runDir, state.Step)
	if err != nil {
		return "", err
	}
	files := []content{
		{ModelFile, func(w io.Writer) error {
			return safetensors.Write(w, model, map[string]string{"format": "pt"})
		}},
		{ConfigFile, bytesOf(configText)},
		{TokenizerFile, bytesOf(c.Tokenizer)},
		{StateFile, bytesOf(stateText)},
	}
	if len(moments) > 0 {
		files = append(files, content{MomentsFile, func(w io.Writer) error {
			return safetensors.Write(w, moments, map[string]string{"format": "pt"})
		}})
	}
	sums, err := place(d, final, files)
	if err != nil {
		return "", fmt.Errorf("saving %s failed; %s; check the free space and that the folder is writable: %w", final, remaining(before), err)
	}
	c.Dir, c.State, c.ModelSHA256 = final, state, sums[ModelFile]
	return final, retain(d, runDir, final, keep)
}

// remaining says what a run holds when a save has failed.
func remaining(before []stored) string {
	for _, s := range before {
		if s.complete {
			return "the run's earlier checkpoints are untouched, the newest is " + filepath.Base(s.dir)
		}
	}
	return "the run holds no checkpoint yet"
}

// content is a file to be written.
type content struct {
	name  string
	write func(io.Writer) error
}

func bytesOf(text []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(text); return err }
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// place writes the files into a temporary folder beside final, renames it, and marks it DONE. On failure nothing is left
// under the final name.
func place(d disk, final string, files []content) (sums digests, err error) {
	parent := filepath.Dir(final)
	temporary := filepath.Join(parent, fmt.Sprintf("%s%s-%d", temporaryPrefix, filepath.Base(final), os.Getpid()))
	at := temporary // where the folder is now
	defer func() {
		if err == nil {
			return
		}
		if at == final && d.Rename(final, temporary) == nil {
			at = temporary
		}
		if removeErr := d.RemoveAll(at); removeErr != nil {
			err = errors.Join(err, removeErr)
		}
	}()
	if err := d.Mkdir(temporary); err != nil {
		return nil, err
	}
	sums = digests{}
	for _, f := range files {
		if sums[f.name], err = writeFile(d, filepath.Join(temporary, f.name), f.write); err != nil {
			return nil, err
		}
	}
	if err := d.SyncDir(temporary); err != nil {
		return nil, err
	}
	if err := d.Rename(temporary, final); err != nil {
		return nil, err
	}
	at = final
	if err := d.SyncDir(parent); err != nil {
		return nil, err
	}
	mark := filepath.Join(final, temporaryPrefix+DoneFile)
	if _, err := writeFile(d, mark, bytesOf(sums.encode())); err != nil {
		return nil, err
	}
	if err := d.Rename(mark, filepath.Join(final, DoneFile)); err != nil {
		return nil, err
	}
	return sums, d.SyncDir(final)
}

// writeFile writes and syncs a new file and gives the SHA-256 of what it wrote.
func writeFile(d disk, path string, write func(io.Writer) error) (string, error) {
	f, err := d.Create(path)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	err = write(io.MultiWriter(f, hash))
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// StepName is the name of a checkpoint's folder in its run, but for a number behind it where the step was saved more than once.
func StepName(step int) string { return fmt.Sprintf("step-%08d", step) }

// freeName gives the folder for a step. A step that is there already (from a run that was started again) keeps its
// folder, and the new one gets a number behind it: replacing one folder by another is two renames, and a crash between
// them would leave neither.
func freeName(runDir string, step int) (string, error) {
	base := filepath.Join(runDir, StepName(step))
	for path, n := base, 2; ; n++ {
		_, err := os.Lstat(path)
		if errors.Is(err, os.ErrNotExist) {
			return path, nil
		}
		if err != nil {
			return "", fmt.Errorf("run folder: %w", err)
		}
		path = fmt.Sprintf("%s-%d", base, n)
	}
}

// clearDead removes what saves that died left behind. The save lock is held, so no save is alive.
func clearDead(d disk, runDir string) {
	entries, err := os.ReadDir(runDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(runDir, e.Name())
		if strings.HasPrefix(e.Name(), temporaryPrefix) {
			_ = d.RemoveAll(path)
			continue
		}
		if !e.IsDir() || !stepForm.MatchString(e.Name()) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(path, DoneFile)); errors.Is(err, os.ErrNotExist) {
			_ = discard(d, path)
		}
	}
}

// discard removes a checkpoint folder. The rename comes first, so that a half-removed one is never under a final name.
func discard(d disk, path string) error {
	temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf("%sold-%s-%d", temporaryPrefix, filepath.Base(path), os.Getpid()))
	if err := d.Rename(path, temporary); err != nil {
		return err
	}
	return d.RemoveAll(temporary)
}

// retain keeps the newest complete checkpoints, latest always among them. A damaged one, or one of a newer format, is
// neither counted nor deleted: what cannot be read may still be worth having.
func retain(d disk, runDir, latest string, keep int) error {
	if keep < 1 {
		return nil
	}
	all, err := list(runDir)
	if err != nil {
		return fmt.Errorf("clearing away old checkpoints: %w", err)
	}
	kept := 1
	var failed error
	for _, s := range all {
		if s.dir == latest || s.fault != nil {
			continue
		}
		if kept++; kept > keep {
			failed = errors.Join(failed, discard(d, s.dir))
		}
	}
	if failed != nil {
		return fmt.Errorf("the checkpoint is saved, but old ones could not be cleared away: %w", failed)
	}
	return nil
}

// tensorsOf lists a checkpoint's tensors in the order of the configuration, and refuses what Load would.
func tensorsOf(c *Checkpoint) (model, moments []safetensors.Tensor, err error) {
	var prefixes []string
	for name := range c.Moments {
		if moment, _, _ := strings.Cut(name, "."); !slices.Contains(prefixes, moment) {
			prefixes = append(prefixes, moment)
		}
	}
	slices.Sort(prefixes)
	for _, t := range c.Config.Tensors() {
		data, ok := c.Tensors[t.Name]
		if !ok || len(data) != t.Len() {
			return nil, nil, fmt.Errorf("%w: %s has %d values, the configuration says %d", ErrTensors, t.Name, len(data), t.Len())
		}
		model = append(model, safetensors.Tensor{Name: t.Name, Shape: t.Shape, Data: data})
		moved := len(prefixes) == 0
		for _, p := range prefixes {
			name := p + "." + t.Name
			data, ok := c.Moments[name]
			if !ok {
				continue
			}
			shape := t.Shape
			switch len(data) {
			case t.Len():
			case t.Rows():
				shape = []int{t.Rows()}
			default:
				return nil, nil, fmt.Errorf("%w: the optimiser's %s has %d values, the tensor %d", ErrTensors, name, len(data), t.Len())
			}
			moments = append(moments, safetensors.Tensor{Name: name, Shape: shape, Data: data})
			moved = true
		}
		if !moved {
			return nil, nil, fmt.Errorf("%w: the optimiser has no moment of %s", ErrTensors, t.Name)
		}
	}
	if len(model) != len(c.Tensors) || len(moments) != len(c.Moments) {
		return nil, nil, fmt.Errorf("%w: there are %d tensors and %d moments, the configuration says %d and %d",
			ErrTensors, len(c.Tensors), len(c.Moments), len(model), len(moments))
	}
	return model, moments, nil
}
