package train

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/usage"
)

// Options is what a person asks of `chiplm train`. Empty fields mean the default, or on resume what the run was
// started with.
type Options struct {
	Config    string          // a model file, or the name of a built-in one
	Sets      []string        // key=value overrides
	Model     *configs.Config // in place of Config and Sets: settings that are resolved already; they are not changed
	Corpus    string
	Valid     string
	Tokenizer string // a tokenizer.json
	Teacher   string // with train.distill: a run under Out, a run's or checkpoint's folder, or a released model, to learn from
	Out       string // where runs are kept
	Name      string // of the run's folder
	Workers   int    // 0: one a processor, and no more than a step has micro-batches
	Resume    bool
	Run       string // the run to resume: a name under Out, or a folder; "" is the newest
	Force     bool   // resume though settings, corpus or tokenizer changed

	Released Trainable // makes teachers of released models; with nil they are refused
}

// The defaults of a new run.
const (
	DefaultConfig = "combo.yaml"
	DefaultCorpus = "builtin"
)

// Workers settles how many workers there are: as many as asked for, one a processor when that is 0, and no more than a
// step has micro-batches. It refuses a negative number.
func Workers(asked, microBatches int) (int, error) {
	if asked < 0 {
		return 0, usage.Errorf("--workers: %d: give 1 or more, or leave it out for one a processor", asked)
	}
	if asked == 0 {
		asked = runtime.NumCPU()
	}
	return min(asked, microBatches), nil
}

// model gives the settings asked for; name is used where no model file is named.
func (o Options) model(name string) (*configs.Config, error) {
	if o.Model != nil {
		own := *o.Model
		return &own, own.Validate()
	}
	if o.Config != "" {
		name = o.Config
	}
	return configs.Load(name, o.Sets...)
}

// resumeDir finds the folder of the run to resume. Whether its checkpoints can be read is for loading to say: a run that
// is damaged is not passed over.
func (o Options) resumeDir() (string, error) {
	run := o.Run
	if run == "" {
		run = o.Name
	}
	found, err := checkpoints.Resolve(o.Out, run)
	if err != nil {
		return "", fmt.Errorf("--resume: %w (a new run starts without --resume)", err)
	}
	if run == "" {
		return filepath.Dir(found), nil // of the newest checkpoint
	}
	if strings.HasPrefix(filepath.Base(found), "step-") {
		return "", fmt.Errorf("--resume: %s is one checkpoint of a run; a run goes on from its newest: --resume %s", found,
			usage.ShellWord(filepath.Dir(filepath.Clean(found))))
	}
	some, err := checkpoints.HasCheckpoints(found)
	if err != nil {
		return "", fmt.Errorf("--resume: %w", err)
	}
	if !some {
		return "", fmt.Errorf("--resume: %s holds no checkpoint: start the run without --resume", found)
	}
	return filepath.Clean(found), nil
}
