package train

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
)

// Options is what a person asks of `chiplm train`. Empty fields mean the default, or on resume what the run was
// started with.
type Options struct {
	Config    string   // a model file, or the name of a built-in one
	Sets      []string // key=value overrides
	Corpus    string
	Valid     string
	Tokenizer string // a tokenizer.json
	Out       string // where runs are kept
	Name      string // of the run's folder
	Workers   int    // 0: one a processor, and no more than a step has micro-batches
	Resume    bool
	Run       string // the run to resume: a name under Out, or a folder; "" is the newest
	Force     bool   // resume though settings, corpus or tokenizer changed
}

// The defaults of a new run.
const (
	DefaultConfig = "combo.yaml"
	DefaultCorpus = "builtin"
)

// workers settles how many workers there are.
func (o Options) workers(microBatches int) (int, error) {
	if o.Workers < 0 {
		return 0, fmt.Errorf("--workers: %d: give 1 or more, or leave it out for one a processor", o.Workers)
	}
	n := o.Workers
	if n == 0 {
		n = runtime.NumCPU()
	}
	return min(n, microBatches), nil
}

// runDir is the folder of a new run.
func (o Options) runDir(name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("--name: %q cannot name a run's folder: give one word, such as combo-2", name)
	}
	return filepath.Join(o.Out, name), nil
}

// resumeDir finds the folder of the run to resume.
func (o Options) resumeDir() (string, error) {
	run := o.Run
	if run == "" {
		run = o.Name
	}
	if run == "" {
		newest, err := checkpoints.Newest(o.Out)
		if err != nil {
			return "", fmt.Errorf("--resume: %w", err)
		}
		return filepath.Dir(newest), nil
	}
	under := filepath.Join(o.Out, run)
	for _, dir := range []string{under, run} {
		newest, err := checkpoints.Newest(dir)
		if err == nil && filepath.Dir(newest) == filepath.Clean(dir) {
			return filepath.Clean(dir), nil
		}
		if err != nil && !errors.Is(err, checkpoints.ErrNone) {
			return "", fmt.Errorf("--resume: %w", err)
		}
	}
	if parent := filepath.Dir(filepath.Clean(run)); strings.HasPrefix(filepath.Base(run), "step-") {
		return "", fmt.Errorf("--resume: %s is one checkpoint of a run; a run goes on from its newest: --resume %s", run, parent)
	}
	return "", fmt.Errorf("--resume: there is no run with a checkpoint in %s, nor in %s: start it without --resume", under, run)
}
