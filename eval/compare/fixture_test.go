package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/eval/results"
)

// made is a run of an arm with a score, as a sweep would write it.
func made(arm string, seed int64, bits float64) results.Run {
	r := results.Run{
		Sweep: "screen", Arm: arm, Seed: seed, Baseline: "plain", Folder: fmt.Sprintf("runs/%s-%d", arm, seed),
		Program: "chiplm 0.1", ConfigSHA256: fmt.Sprintf("c%s%d", arm, seed), ArmSHA256: "a" + arm, TokenizerSHA256: "t4096",
		ModelSHA256: fmt.Sprintf("m%s%d%g", arm, seed, bits), CorpusSHA256: "0123456789abcdef", Corpus: "tinystories",
		HeldOut:  results.HeldOut{Name: "tinystories-valid", SHA256: "fedcba9876543210", Stories: 5000, Bytes: 3984023},
		Quality:  results.Quality{ScoredBy: "engine", BitsPerByte: bits},
		Cost:     results.Cost{Parameters: 3377600, ImageBytes: 2100000, BytesPerToken: 1020000, Target: "esp32s3"},
		Training: results.Trained{Tokens: 1000000, CorpusTokens: 3300000, Steps: 244, Loss: bits * 2.7, Seconds: 60, Workers: 2},
	}
	tokens(&r, 3.97)
	speed(&r, 90)
	for i := 1; i <= 20; i++ {
		r.Curve = append(r.Curve, results.Point{Tokens: int64(i) * 50000, Loss: bits*2.7 + 4*math.Exp(-float64(i)/3)})
	}
	return r
}

// tokens sets the bytes a token stands for, and what follows from it.
func tokens(r *results.Run, bytes float64) {
	r.Quality.TextBytesPerToken = bytes
	r.Quality.Tokens = int64(float64(r.HeldOut.Bytes) / bytes)
	r.Quality.NatsPerToken = r.Quality.BitsPerByte * math.Ln2 * bytes
	r.Cost.TextPerSecond = r.Cost.TokensPerSecond * bytes
}

func speed(r *results.Run, rate float64) {
	r.Cost.TokensPerSecond = rate
	r.Cost.TextPerSecond = rate * r.Quality.TextBytesPerToken
}

// study is a sweep with an arm of each kind.
func study() []results.Run {
	var runs []results.Run
	add := func(arm string, scores []float64, change func(*results.Run)) {
		for i, bits := range scores {
			r := made(arm, int64(i+1), bits)
			if change != nil {
				change(&r)
			}
			runs = append(runs, r)
		}
	}
	add("plain", []float64{1.000, 1.002}, nil)
	add("ple", []float64{0.980, 0.981}, func(r *results.Run) { r.Cost.BytesPerToken, r.Cost.Parameters = 1050600, 4950464; speed(r, 86) })
	add("relu", []float64{0.9995, 1.0015}, func(r *results.Run) { r.Cost.MeasuredPer, r.Cost.LiveNeurons = 700000, 0.21; speed(r, 117) })
	add("combo", []float64{0.979, 0.9815}, func(r *results.Run) { r.Cost.MeasuredPer = 731000; speed(r, 112) })
	add("layers12", []float64{1.050, 1.054}, func(r *results.Run) { speed(r, 76) })
	add("vocab8192", []float64{0.970, 0.972}, func(r *results.Run) {
		r.TokenizerSHA256, r.Cost.Parameters = "t8192", 8600000
		tokens(r, 4.31)
		speed(r, 81)
	})
	add("float", []float64{0.976}, func(r *results.Run) {
		r.Quality.ScoredBy, r.Cost.ImageBytes, r.Cost.BytesPerToken, r.Cost.Target = "graph", 0, 8160000, ""
		speed(r, 0)
	})
	return runs
}

// crowd is a sweep of so many arms with two seeds, close to each other.
func crowd(arms int) []results.Run {
	rng := rand.New(rand.NewPCG(5, 6))
	var runs []results.Run
	for i := range arms {
		name, at := fmt.Sprintf("variant-%02d-of-many", i), 0.9+0.02*rng.Float64()
		if i == 0 {
			name = "plain"
		}
		pace := 85 + 5*rng.Float64()
		for seed := range int64(2) {
			r := made(name, seed+1, at+0.002*rng.NormFloat64())
			speed(&r, pace)
			runs = append(runs, r)
		}
	}
	return runs
}

// write puts runs into a file of results.
func write(t testing.TB, runs ...results.Run) string {
	t.Helper()
	var lines []byte
	for _, r := range runs {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(path, lines, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// call runs the command.
func call(t testing.TB, args ...string) (string, error) {
	t.Helper()
	cmd := Command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var out, errs bytes.Buffer
	cmd.SetArgs(append([]string{}, args...)) // not nil, which means those of the test
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage.Errorf("%w", err) })
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func isUsage(err error) bool {
	var coded usage.Coded
	return errors.As(err, &coded)
}
