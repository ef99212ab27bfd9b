package train

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
)

// goldenLossTolerance is relative. Each step's loss rests on all the steps before it, and the goldens are computed in
// double precision. The fixture's seeds are such that disturbing every activation by 2e-7 moves no loss by more than
// 2e-5 and flips no code for good; four times that leaves room for another order of summation.
const goldenLossTolerance = 1e-4

// goldenBatch gives the fixture's one batch at every step.
type goldenBatch struct {
	batch, positions int
	ids, targets     []int32
}

func (b goldenBatch) Batch(_ int64, ids, targets []int32, lengths []int) []int {
	copy(ids, b.ids)
	copy(targets, b.targets)
	for range b.batch {
		lengths = append(lengths, b.positions)
	}
	return lengths
}

// TestGoldenLosses takes ten optimiser steps with whole models and compares every loss with PyTorch's
// (../arch/testdata/golden.py).
func TestGoldenLosses(t *testing.T) {
	raw, err := os.ReadFile("../arch/testdata/models.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Models []struct {
			Name             string
			Config           json.RawMessage
			Batch, Positions int
			IDs, Targets     []int32
			Optimizer        struct {
				LR, Beta1, Beta2, Eps, Clip float64
				WeightDecay                 float64 `json:"weight_decay"`
			}
			Weights map[string]base64Floats
			Modes   map[string]struct{ Losses []float64 }
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Models) == 0 {
		t.Fatal("no models in the fixture")
	}
	for _, m := range file.Models {
		for mode, want := range m.Modes {
			t.Run(m.Name+"/"+mode, func(t *testing.T) {
				var cfg configs.Config
				if err := yaml.Unmarshal(m.Config, &cfg); err != nil { // JSON is YAML
					t.Fatal(err)
				}
				switch mode {
				case "float":
					cfg.Quant.StartStep = len(want.Losses)
				case "weights_only":
					cfg.Quant.Activations.Bits = 32
				}
				cfg.ContextLength = m.Positions
				cfg.Train.MicroBatch, cfg.Train.BatchTokens = m.Batch, m.Batch*m.Positions
				cfg.Train.Tokens = int64(len(want.Losses) * cfg.Train.BatchTokens)
				cfg.Train.Optimizer, cfg.Train.Schedule, cfg.Train.LR = "adamw", "constant", m.Optimizer.LR
				cfg.Train.Beta1, cfg.Train.Beta2, cfg.Train.Eps = m.Optimizer.Beta1, m.Optimizer.Beta2, m.Optimizer.Eps
				cfg.Train.LRScale = configs.Defaults().Train.LRScale
				cfg.Train.WeightDecay, cfg.Train.Clip = m.Optimizer.WeightDecay, m.Optimizer.Clip

				w := arch.NewWeights(&cfg)
				for i, tensor := range w.Tensors {
					if n := copy(w.Data[i], m.Weights[tensor.Name]); n != tensor.Len() {
						t.Fatalf("%s: %d values in the fixture, %d in the model", tensor.Name, n, tensor.Len())
					}
				}
				batch := goldenBatch{m.Batch, m.Positions, m.IDs, m.Targets}
				trainer, err := NewTrainer(&cfg, w.Data, ArchBuilder(&cfg, w), batch, 1)
				if err != nil {
					t.Fatal(err)
				}
				defer trainer.Close()
				for step, loss := range want.Losses {
					r, err := trainer.Step(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					if d := math.Abs(r.Loss/loss - 1); !(d <= goldenLossTolerance) {
						t.Errorf("step %d: loss %.7f, PyTorch %.7f: relative difference %.1e", step, r.Loss, loss, d)
					}
				}
			})
		}
	}
}
