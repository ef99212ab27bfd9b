package checkpoints

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// stateVersion is raised when an old reader would misunderstand a checkpoint.
const stateVersion = 1

// State is where a run stands. Save sets Version, Serial, SavedAt, ConfigHash and TokenizerHash itself.
//
// Corpus, Valid and Teacher may be paths in any bytes, and JSON holds only UTF-8. In state.json a path that is not valid UTF-8, or
// that starts with a double quote, stands as a Go string literal with its quotes: "\"/data/caf\\xe9.txt\"".
type State struct {
	Version       int       `json:"version"`
	Serial        int64     `json:"serial"`   // counts the saves of a run; the highest is the newest
	SavedAt       time.Time `json:"saved_at"` // UTC
	Step          int       `json:"step"`     // optimiser steps done
	Tokens        int64     `json:"tokens"`   // tokens trained on
	Sequences     int64     `json:"sequences"`
	ConfigHash    string    `json:"config_hash"`    // SHA-256 of config.yaml
	TokenizerHash string    `json:"tokenizer_hash"` // SHA-256 of tokenizer.json
	CorpusHash    string    `json:"corpus_hash"`
	Corpus        string    `json:"corpus"` // as the user gave it: an absolute path, or builtin:...
	Valid         string    `json:"valid"`  // the held-out corpus, likewise
	ValidHash     string    `json:"valid_hash"`
	Teacher       string    `json:"teacher,omitempty"`      // the run or checkpoint whose distributions were learned from, as the user named it
	TeacherHash   string    `json:"teacher_hash,omitempty"` // SHA-256 of its weights
	TeacherStep   int       `json:"teacher_step,omitempty"` // of the checkpoint that it was
	BestValid     float64   `json:"best_valid"`             // lowest validation loss, nats per token; +Inf before the first
	LastLoss      float64   `json:"last_loss"`              // training loss of the last step, nats per token; NaN before the first
	Workers       int       `json:"workers"`
	CreatedBy     string    `json:"created_by"` // version of chiplm
}

// MarshalJSON writes losses that are not finite as null, since JSON has no such numbers, and paths without loss.
func (s State) MarshalJSON() ([]byte, error) {
	type plain State
	return json.Marshal(struct {
		plain
		BestValid *float64 `json:"best_valid"`
		LastLoss  *float64 `json:"last_loss"`
		Corpus    pathText `json:"corpus"`
		Valid     pathText `json:"valid"`
		Teacher   pathText `json:"teacher,omitempty"`
	}{plain(s), finite(s.BestValid), finite(s.LastLoss), pathText(s.Corpus), pathText(s.Valid), pathText(s.Teacher)})
}

// UnmarshalJSON reads a null best_valid as +Inf and a null last_loss as NaN.
func (s *State) UnmarshalJSON(text []byte) error {
	type plain State
	var in struct {
		plain
		BestValid *float64 `json:"best_valid"`
		LastLoss  *float64 `json:"last_loss"`
		Corpus    pathText `json:"corpus"`
		Valid     pathText `json:"valid"`
		Teacher   pathText `json:"teacher"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*s = State(in.plain)
	s.Corpus, s.Valid, s.Teacher = string(in.Corpus), string(in.Valid), string(in.Teacher)
	s.BestValid, s.LastLoss = math.Inf(1), math.NaN()
	if in.BestValid != nil {
		s.BestValid = *in.BestValid
	}
	if in.LastLoss != nil {
		s.LastLoss = *in.LastLoss
	}
	return nil
}

func finite(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

func encodeState(s State) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", StateFile, err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, fmt.Errorf("%s: %w", StateFile, err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// decodeState reads state.json. Unknown fields are passed over: a change that matters raises the version. Of a newer
// version it gives version, serial and time beside the error.
func decodeState(text []byte) (State, error) {
	var version struct { // the same in every version
		Version int       `json:"version"`
		Serial  int64     `json:"serial"`
		SavedAt time.Time `json:"saved_at"`
	}
	var s State
	if err := json.Unmarshal(text, &version); err != nil {
		return s, fmt.Errorf("%w: %s: %v", ErrFormat, StateFile, err)
	}
	if version.Version > stateVersion {
		s.Version, s.Serial, s.SavedAt = version.Version, version.Serial, version.SavedAt
		return s, fmt.Errorf("%w: version %d, this chiplm reads up to %d; use a newer chiplm", ErrVersion, version.Version, stateVersion)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%w: %s: %v", ErrFormat, StateFile, err)
	}
	if s.Version < 1 || s.Step < 0 || s.Tokens < 0 || s.Sequences < 0 || s.Serial < 0 {
		return s, fmt.Errorf("%w: %s: version %d, step %d, tokens %d, sequences %d, serial %d cannot be",
			ErrFormat, StateFile, s.Version, s.Step, s.Tokens, s.Sequences, s.Serial)
	}
	return s, nil
}
