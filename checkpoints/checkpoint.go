// Package checkpoints stores models in training and reads them back.
//
// A checkpoint is a folder:
//
//	model.safetensors   the weights, float32, under the names and shapes of configs.Tensors
//	config.yaml         the resolved model file
//	tokenizer.json      the tokenizer
//	state.safetensors   the optimiser's moments: "m.<tensor>", "v.<tensor>"; absent in a released model
//	state.json          the State
//	DONE                the SHA-256 of each file above, in the form that sha256sum -c reads; written last
//
// A run is a folder with checkpoints in it, step-00000200 and so on, beside its metrics. A checkpoint is written under
// a temporary name (.tmp-...), synced, renamed, and only then marked DONE, so a folder without DONE is one whose save
// was cut off: it is never loaded, and the next save clears it away. [Save] keeps the newest few. [Load] checks every
// hash, name and shape.
//
// Caveats: the guarantees rest on rename being atomic and sync being honest, as on local Linux file systems. Files are
// little endian. The folder names of a run are the package's: it deletes .tmp-... and step-... without DONE.
package checkpoints

import (
	"errors"

	"github.com/chiplm/chiplm/configs"
)

// DefaultRoot is where runs are kept, relative to the working directory.
const DefaultRoot = "checkpoints/runs"

// The files of a checkpoint.
const (
	ModelFile     = "model.safetensors"
	ConfigFile    = "config.yaml"
	TokenizerFile = "tokenizer.json"
	MomentsFile   = "state.safetensors"
	StateFile     = "state.json"
	DoneFile      = "DONE"
)

// Errors of this package. The text of each returned error names the folder and says what to do.
var (
	// ErrNone occurs when a folder holds no complete checkpoint.
	ErrNone = errors.New("no complete checkpoint")
	// ErrIncomplete occurs when a checkpoint has no DONE: its save was cut off.
	ErrIncomplete = errors.New("the checkpoint is incomplete")
	// ErrDamaged occurs when a file is missing, or is not the one that was saved.
	ErrDamaged = errors.New("the checkpoint is damaged")
	// ErrFormat occurs when a file is the one that was saved, yet cannot be read as what it should be.
	ErrFormat = errors.New("a file of the checkpoint is not in its format")
	// ErrVersion occurs when a newer chiplm wrote the checkpoint.
	ErrVersion = errors.New("the checkpoint is of a newer format")
	// ErrTensors occurs when names or shapes are not those of the configuration.
	ErrTensors = errors.New("the tensors do not match the configuration")
	// ErrLocked occurs when another process trains into the run.
	ErrLocked = errors.New("the run is in use")
)

// Checkpoint is a model in training, in memory.
type Checkpoint struct {
	Dir         string // the folder it was read from or saved to
	Config      *configs.Config
	Tokenizer   []byte               // tokenizer.json
	Tensors     map[string][]float32 // the weights by the names of configs.Tensors, row after row
	Moments     map[string][]float32 // "m.<tensor>", "v.<tensor>": shaped like the tensor; nil in a released model
	State       State
	ModelSHA256 string   // of model.safetensors, in hex; set by Save and Load
	Notes       []string // what Load passed over to get here, one sentence each, for the user to see
}
