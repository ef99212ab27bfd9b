package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
)

// Report is what a measurement of training tells, also as JSON.
type Report struct {
	Config  string   `json:"config"` // as asked for
	Sets    []string `json:"set"`
	Hash    string   `json:"config_hash"`
	CPU     string   `json:"cpu"` // "" where it is not known
	Path    string   `json:"simd"`
	Workers int      `json:"workers"`

	Steps           int     `json:"steps"`
	TokensPerStep   int64   `json:"tokens_per_step"`
	Seconds         float64 `json:"seconds"`              // all steps together
	Fastest         float64 `json:"fastest_step_seconds"` //
	TokensPerSecond float64 `json:"tokens_per_second"`
	FLOPPerToken    int64   `json:"flop_per_token"` // model arithmetic
	GFLOPS          float64 `json:"gflops"`         // the same per second, over all workers
	SGEMM           float64 `json:"sgemm_gflops"`   // the better of the two below; 0 in a build without the library
	SGEMMBefore     float64 `json:"sgemm_gflops_before"`
	SGEMMAfter      float64 `json:"sgemm_gflops_after"`
	Share           float64 `json:"share_of_sgemm_peak"` // 0 to 1; 0 where there is no peak

	Resident int64 `json:"rss_bytes"`              // at the end of the steps; 0 where it is not known
	Heap     int64 `json:"heap_bytes"`             // likewise
	Garbage  int64 `json:"garbage_bytes_per_step"` // allocated

	Operations []Operation `json:"operations"`

	rows []profile.Row // by kind, of all steps
	took time.Duration
}

// Operation is what the workers together spend on one kind of work in a step.
type Operation struct {
	Name         string   `json:"operation"`
	Milliseconds float64  `json:"ms_per_step"` // added up over the workers
	Share        float64  `json:"share"`       // of the workers' time, 0 to 1
	Calls        float64  `json:"calls_per_step"`
	GFLOPS       *float64 `json:"gflops"`        // of a worker while at it; null for all but products
	GBytes       *float64 `json:"gb_per_second"` // likewise; null for all but element-wise work
}

// newReport works out the figures of some steps that took so long, from the rows of all workers' profiles.
func newReport(cfg *configs.Config, workers, steps int, took, fastest time.Duration, rows []profile.Row) *Report {
	r := &Report{Hash: cfg.Hash(), Workers: workers, Steps: steps, TokensPerStep: int64(cfg.Train.BatchTokens),
		Seconds: took.Seconds(), Fastest: fastest.Seconds(), FLOPPerToken: cfg.Budget().TrainFLOP,
		rows: rows, took: took}
	r.TokensPerSecond = float64(steps) * float64(r.TokensPerStep) / r.Seconds
	r.GFLOPS = r.TokensPerSecond * float64(r.FLOPPerToken) / 1e9
	for k, row := range rows {
		if row.Laps == 0 {
			continue
		}
		seconds := row.Time.Seconds()
		o := Operation{Name: profile.Kind(k).String(), Milliseconds: 1e3 * seconds / float64(steps),
			Share: seconds / (float64(workers) * r.Seconds), Calls: float64(row.Laps) / float64(steps)}
		if seconds > 0 && row.FLOP > 0 {
			rate := float64(row.FLOP) / seconds / 1e9
			o.GFLOPS = &rate
		}
		if seconds > 0 && row.Bytes > 0 {
			rate := float64(row.Bytes) / seconds / 1e9
			o.GBytes = &rate
		}
		if profile.Kind(k) == profile.Rest || profile.Kind(k) == profile.Waiting {
			o.Calls = 0 // it is no operation
		}
		r.Operations = append(r.Operations, o)
	}
	slices.SortStableFunc(r.Operations, func(a, b Operation) int { return cmp.Compare(b.Milliseconds, a.Milliseconds) })
	return r
}

func (r *Report) setPeak(before, after float64) {
	r.SGEMMBefore, r.SGEMMAfter, r.SGEMM = before, after, max(before, after)
	if r.SGEMM > 0 {
		r.Share = r.GFLOPS / r.SGEMM
	}
}

// write prints the report as a table.
func (r *Report) write(w io.Writer) error {
	var b bytes.Buffer
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("model:", "%s", strings.Join(append([]string{r.Config}, r.Sets...), " "))
	line("machine:", "%s on %s, path %s", workerCount(r.Workers), cmp.Or(r.CPU, "a processor of unknown name"), r.Path)
	line("speed:", "%s tokens/s over %d steps of %s tokens in %.1f s; the fastest step %s tokens/s",
		digits.Comma(int64(r.TokensPerSecond)), r.Steps, digits.Comma(r.TokensPerStep), r.Seconds,
		digits.Comma(int64(float64(r.TokensPerStep)/r.Fastest)))
	line("arithmetic:", "%.1f GFLOP/s: %.2f MFLOP of model arithmetic per token", r.GFLOPS, float64(r.FLOPPerToken)/1e6)
	if r.SGEMM > 0 {
		line("SGEMM peak:", "%.1f GFLOP/s, of which this is %.1f %%", r.SGEMM, 100*r.Share)
		line("", "(%d x %d x %d by the BLAS library, a thread a worker, all at the same time:", peakSize, peakSize, peakSize)
		line("", "%.1f before, %.1f after)", r.SGEMMBefore, r.SGEMMAfter)
	} else {
		line("SGEMM peak:", "unknown: this build has no BLAS library")
	}
	resident := "unknown"
	if r.Resident > 0 {
		resident = fmt.Sprintf("%.1f MB", float64(r.Resident)/1e6)
	}
	line("memory:", "resident %s, heap %.1f MB, garbage %.1f kB a step", resident, float64(r.Heap)/1e6, float64(r.Garbage)/1e3)
	fmt.Fprintf(&b, "\n%-26s %12s %8s %8s %16s\n", "operation", "ms per step", "share", "calls", "rate of a worker")
	for _, o := range r.Operations {
		calls, rate := "", ""
		if o.Calls > 0 {
			calls = fmt.Sprintf("%.0f", o.Calls)
		}
		switch {
		case o.GFLOPS != nil:
			rate = fmt.Sprintf("%.1f GFLOP/s", *o.GFLOPS)
		case o.GBytes != nil:
			rate = fmt.Sprintf("%.2f GB/s   ", *o.GBytes)
		}
		row(&b, o.Name, o.Milliseconds, o.Share, calls, rate)
	}
	total := float64(r.Workers) * r.Seconds / float64(r.Steps) * 1e3
	row(&b, "all, on "+workerCount(r.Workers), total, 1, "", "")
	_, err := w.Write(b.Bytes())
	return err
}

func workerCount(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

func row(w io.Writer, name string, milliseconds, share float64, calls, rate string) {
	line := fmt.Sprintf("%-26s %12.2f %6.1f %% %8s %16s", name, milliseconds, 100*share, calls, rate)
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}
