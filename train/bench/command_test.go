package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/qat/simd"
)

// bench runs `chiplm bench train` on the tiny model.
func bench(t *testing.T, ctx context.Context, args ...string) (stdout string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.yaml")
	if err := os.WriteFile(path, []byte(tinyModel), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := Command()
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(append([]string{"train", "--config", path}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestJSON(t *testing.T) {
	out, err := bench(t, t.Context(), "--steps", "3", "--workers", "2", "--set", "d_ff=32", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	cfg := tinyConfig(t, "d_ff=32")
	if filepath.Base(r.Config) != "tiny.yaml" || !slices.Equal(r.Sets, []string{"d_ff=32"}) || r.Hash != cfg.Hash() {
		t.Errorf("of which model: %q %q %q", r.Config, r.Sets, r.Hash)
	}
	if r.Path != simd.Current().String() || r.Workers != 2 || r.Steps != 3 || r.TokensPerStep != 96 || r.FLOPPerToken != cfg.Budget().TrainFLOP {
		t.Errorf("what was run: %+v", r)
	}
	near := func(what string, got, want float64) {
		if !(math.Abs(got-want) <= 1e-9*math.Abs(want)) || !(want > 0) {
			t.Errorf("%s is %v, the other fields say %v", what, got, want)
		}
	}
	near("tokens_per_second", r.TokensPerSecond, 3*96/r.Seconds)
	near("gflops", r.GFLOPS, r.TokensPerSecond*float64(r.FLOPPerToken)/1e9)
	if slices.Contains(simd.Paths(), simd.Library) {
		near("share_of_sgemm_peak", r.Share, r.GFLOPS/r.SGEMM)
		near("sgemm_gflops", r.SGEMM, max(r.SGEMMBefore, r.SGEMMAfter))
	} else if r.Share != 0 || r.SGEMM != 0 {
		t.Errorf("a peak without a library: %+v", r)
	}
	if r.Share >= 1 || r.Fastest > r.Seconds/3 || r.Fastest <= 0 || r.Heap <= 0 || r.Garbage < 0 {
		t.Errorf("figures: %+v", r)
	}
	milliseconds, shares := 0.0, 0.0
	for i, o := range r.Operations {
		milliseconds += o.Milliseconds
		shares += o.Share
		if i > 0 && o.Milliseconds > r.Operations[i-1].Milliseconds {
			t.Errorf("%s takes longer than the row above it", o.Name)
		}
		if o.GFLOPS != nil && o.GBytes != nil {
			t.Errorf("%s has two rates", o.Name)
		}
	}
	near("the time of all operations", milliseconds, 2*1e3*r.Seconds/3)
	near("the share of all operations", shares, 1)
}

func TestTable(t *testing.T) {
	out, err := bench(t, t.Context(), "--steps", "2", "--workers", "1", "--set", "experts=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tiny.yaml experts=2\n", "1 worker on ", "tokens/s over 2 steps of 96 tokens", "SGEMM peak:",
		"\nlinear forward ", "\nexpert sorting ", "\noptimiser ", "\ngraph machine and rest ", "\nall, on 1 worker "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	_, table, _ := strings.Cut(out, "\noperation")
	for line := range strings.Lines(table) {
		if len(line) > 101 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		args  string
		want  string
		usage bool
	}{
		{"--steps -1", "--steps -1", true},
		{"--workers -1", "--workers", true},
		{"--set d_modle=3", "d_model", false},
		{"--set train.batch_tokens=33", "batch_tokens", false},
		{"--config nowhere.yaml", "nowhere.yaml", false},
		{"word", "word", false}, // a usage error by the root command's doing
	} {
		_, err := bench(t, t.Context(), strings.Fields(c.args)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
		var u *usage.Error
		if errors.As(err, &u) != c.usage {
			t.Errorf("%s: a usage error is %v, want %v", c.args, !c.usage, c.usage)
		}
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := bench(t, ctx); !errors.Is(err, context.Canceled) || out != "" {
		t.Errorf("got %v and %q", err, out)
	}
}
