package bench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/simd"
	"github.com/chiplm/chiplm/train"
)

// Options is what a person asks of `chiplm bench train`.
type Options struct {
	Config  string   // a model file, or the name of a built-in one
	Sets    []string // key=value overrides
	Workers int      // 0: one a processor, and no more than a step has micro-batches
	Steps   int      // counted; 0: as many as take about ten seconds
}

// defaultTime is how long the counted steps take together when their number is not given; there are at least two.
const defaultTime = 10 * time.Second

// seed is that of the weights and of the token ids.
const seed = 1

// Train measures training. tell is called after each step with the steps done and about how many there will be. When ctx
// ends, so does the measurement, with ctx's error.
func Train(ctx context.Context, o Options, tell func(done, about int64)) (*Report, error) {
	cfg, err := configs.Load(o.Config, o.Sets...)
	if err != nil {
		return nil, err
	}
	cfg.Quant.Start, cfg.Quant.StartStep, cfg.Train.Distill = 0, 0, 0
	plan, err := train.NewPlan(cfg)
	if err != nil {
		return nil, err
	}
	workers, err := train.Workers(o.Workers, plan.MicroBatches)
	if err != nil {
		return nil, err
	}
	if err := train.CheckMemory(cfg, workers); err != nil {
		return nil, err
	}
	before, err := sgemmPeak(ctx, workers)
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // its matrices are no part of training
	r, err := steps(ctx, cfg, workers, o.Steps, tell)
	if err != nil {
		return nil, err
	}
	after, err := sgemmPeak(ctx, workers)
	if err != nil {
		return nil, err
	}
	r.Config, r.Sets, r.CPU, r.Path = o.Config, append([]string{}, o.Sets...), CPUModel(), simd.Current().String()
	r.setPeak(before, after)
	return r, nil
}

// steps builds a trainer, takes a step that is not counted, and measures those after it: count, or when that is 0 as
// many as take the default time.
func steps(ctx context.Context, cfg *configs.Config, workers, count int, tell func(done, about int64)) (*Report, error) {
	weights := arch.InitWeights(cfg, seed)
	t, err := train.NewTrainer(cfg, weights.Data, train.ArchBuilder(cfg, weights), newZipf(cfg.VocabSize, cfg.ContextLength, seed), workers)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	profiles := t.Profile()
	if _, err := t.Step(ctx); err != nil {
		return nil, fmt.Errorf("the step before the first that counts: %w", err)
	}

	var memory, memoryAfter runtime.MemStats
	runtime.ReadMemStats(&memory)
	start := time.Now()
	for _, p := range profiles {
		p.Start(start)
	}
	done, fastest := 0, time.Duration(0)
	for more(count, done, time.Since(start)) {
		s, err := t.Step(ctx)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", done+1, err)
		}
		if done++; done == 1 || s.Elapsed < fastest {
			fastest = s.Elapsed
		}
		tell(int64(done), about(count, done, time.Since(start)))
	}
	stop := time.Now()
	for _, p := range profiles {
		p.Stop(stop)
	}
	runtime.ReadMemStats(&memoryAfter)
	r := newReport(cfg, workers, done, stop.Sub(start), fastest, profile.Sum(profiles))
	r.Heap = int64(memoryAfter.HeapAlloc)
	r.Garbage = int64(memoryAfter.TotalAlloc-memory.TotalAlloc) / int64(done)
	r.Resident = residentBytes()
	return r, nil
}

// more says whether to take another step after some that took so long.
func more(count, done int, took time.Duration) bool {
	if count > 0 {
		return done < count
	}
	return done < 2 || took < defaultTime
}

// about is how many steps there will be.
func about(count, done int, took time.Duration) int64 {
	if count > 0 {
		return int64(count)
	}
	return max(int64(done), int64(float64(done)*float64(defaultTime)/float64(took)))
}
