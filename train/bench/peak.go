package bench

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/qat/simd"
)

// The peak is that of products of this size, in so many rounds of so long.
const (
	peakSize   = 1024
	peakRounds = 8
	peakRound  = 100 * time.Millisecond
)

// sgemmPeak is the speed in GFLOP/s of the BLAS library's product of 1024 x 1024 matrices, on one thread a worker, all
// at the same time, added up over the workers: the best of some rounds. It is 0 in a build without the library.
func sgemmPeak(ctx context.Context, workers int) (float64, error) {
	if !slices.Contains(simd.Paths(), simd.Library) {
		return 0, nil
	}
	matrices := make([][3]kernels.Mat, workers)
	for i := range matrices {
		for j := range matrices[i] {
			data := make([]float32, peakSize*peakSize)
			for k := range data {
				data[k] = float32(k%7) - 3
			}
			matrices[i][j] = kernels.M(data, peakSize)
		}
	}
	best := 0.0
	for range peakRounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		rates := make([]float64, workers)
		var wg sync.WaitGroup
		for i, m := range matrices {
			wg.Go(func() { rates[i] = sgemmRate(m[0], m[1], m[2]) })
		}
		wg.Wait()
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		best = max(best, sum)
	}
	return best, nil
}

// sgemmRate multiplies for the time of a round and gives the speed in GFLOP/s.
func sgemmRate(a, b, c kernels.Mat) float64 {
	start, products := time.Now(), 0
	for {
		kernels.LibraryGemm(peakSize, peakSize, peakSize, a, b, false, c)
		products++
		if t := time.Since(start); t >= peakRound {
			return float64(products) * 2 * peakSize * peakSize * peakSize / t.Seconds() / 1e9
		}
	}
}
