package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/chiplm/chiplm/data/regular"
)

// MetricsFile is the name of a run's metrics: a JSON object a line, appended as training goes on.
const MetricsFile = "metrics.jsonl"

// Record is a line of a run's metrics. A line is about a training step (Loss), a validation (ValidLoss) or a sample.
type Record struct {
	Step            int      `json:"step"`
	Tokens          int64    `json:"tokens"`
	Loss            *float64 `json:"loss,omitempty"`     // nats per token
	BPB             *float64 `json:"bpb,omitempty"`      // the same in bits per byte, at the corpus' mean bytes per token
	AuxLoss         *float64 `json:"aux_loss,omitempty"` // load-balancing loss of experts
	LR              *float64 `json:"lr,omitempty"`
	GradNorm        *float64 `json:"grad_norm,omitempty"`
	TokensPerSecond *float64 `json:"tokens_per_second,omitempty"`
	ValidLoss       *float64 `json:"valid_loss,omitempty"` // nats per token, the closing end-of-text not charged
	ValidBPB        *float64 `json:"valid_bpb,omitempty"`
	ValidTokens     int64    `json:"valid_tokens,omitempty"`
	Sample          *string  `json:"sample,omitempty"`
}

// Metrics appends to a run's metrics file. A line is written whole, at once.
type Metrics struct {
	f   *os.File
	buf []byte
}

// OpenMetrics opens the metrics of a run that has taken the given number of steps. Lines about later steps, which a
// killed run may have left, are dropped, and so is a line cut short.
func OpenMetrics(dir string, step int) (*Metrics, error) {
	path := filepath.Join(dir, MetricsFile)
	if err := truncateMetrics(path, step); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return &Metrics{f: f}, nil
}

// noLimit lets the metrics of a run be of any length: reading looks one byte further.
const noLimit = math.MaxInt64 - 1

func truncateMetrics(path string, step int) error {
	old, err := regular.ReadFile(path, noLimit)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(old) {
		var r Record
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &r) != nil || r.Step > step {
			continue
		}
		kept = append(kept, line...)
	}
	if len(kept) == len(old) {
		return nil
	}
	return regular.WriteFile(path, kept)
}

// Step writes the line of a training step. It is called once a step and makes no garbage.
func (m *Metrics) Step(r StepResult, tokens int64, bpb, tokensPerSecond float64) error {
	b := append(m.buf[:0], `{"step":`...)
	b = strconv.AppendInt(b, int64(r.Step), 10)
	b = append(b, `,"tokens":`...)
	b = strconv.AppendInt(b, tokens, 10)
	b = appendNumber(b, "loss", r.Loss)
	b = appendNumber(b, "bpb", bpb)
	if r.AuxLoss != 0 {
		b = appendNumber(b, "aux_loss", r.AuxLoss)
	}
	b = appendNumber(b, "lr", r.LR)
	b = appendNumber(b, "grad_norm", r.GradNorm)
	b = appendNumber(b, "tokens_per_second", tokensPerSecond)
	m.buf = append(b, "}\n"...)
	return m.write(m.buf)
}

func appendNumber(b []byte, key string, x float64) []byte {
	b = append(b, `,"`...)
	b = append(b, key...)
	b = append(b, `":`...)
	return strconv.AppendFloat(b, x, 'g', 7, 64)
}

// Write appends a line of any kind.
func (m *Metrics) Write(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return m.write(append(line, '\n'))
}

func (m *Metrics) write(line []byte) error {
	if _, err := m.f.Write(line); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Close closes the file.
func (m *Metrics) Close() error { return m.f.Close() }

// ReadMetrics reads the metrics of a run. A line that is not whole is skipped.
func ReadMetrics(dir string) ([]Record, error) {
	f, err := regular.Open(filepath.Join(dir, MetricsFile))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	defer f.Close()
	var records []Record
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		var rec Record
		if err == nil && json.Unmarshal(line, &rec) == nil {
			records = append(records, rec)
		}
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
}
