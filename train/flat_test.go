package train

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/chiplm/chiplm/arch"
)

// residentPages is the memory that the process has in pages, where the system tells; else 0.
func residentPages(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatalf("/proc/self/statm: %v", err)
	}
	return resident
}

// settle collects garbage twice, since pools outlive one collection, and measures what is left.
func settle(t *testing.T, m *runtime.MemStats) (resident int) {
	runtime.GC()
	debug.FreeOSMemory()
	runtime.ReadMemStats(m)
	return residentPages(t)
}

// aloneVariable tells the test binary that it runs one test as a process of its own.
const aloneVariable = "CHIPLM_TEST_ALONE"

// TestMemoryStaysFlat trains whole small models for thousands of steps: what lives on the heap afterwards, and what the
// process has, are what they were after the first tenth. It is a process of its own: memory that other tests have had,
// in huge pages too, comes back in large pieces.
func TestMemoryStaysFlat(t *testing.T) {
	if os.Getenv(aloneVariable) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command(self, "-test.run=^TestMemoryStaysFlat$", "-test.v", fmt.Sprintf("-test.short=%v", testing.Short()))
		child.Env = append(os.Environ(), aloneVariable+"=1")
		output, err := child.CombinedOutput()
		t.Logf("%s", output)
		if err != nil {
			t.Error(err)
		}
		return
	}
	steps := 10_000
	if testing.Short() {
		steps = 1000
	}
	// A leak of 32 bytes a step would be 288 KB of heap after the 9,000 steps that count; some 30 KB come and go. The
	// resident memory also has what the collector and the C library keep for later, about 1 MB.
	const heapSlack, residentSlack = 256 << 10, 4 << 20
	for _, workers := range []int{1, 2} {
		cfg := tinyConfig()
		cfg.PLEDim = 4
		cfg.Train.BatchTokens = 24 // two micro-batches
		cfg.Train.Tokens = int64(steps * cfg.Train.BatchTokens)
		w := arch.InitWeights(cfg, 1)
		tr, err := NewTrainer(cfg, w.Data, ArchBuilder(cfg, w), fakeFor(cfg), workers)
		if err != nil {
			t.Fatal(err)
		}
		var first, last runtime.MemStats
		resident := 0
		for step := range steps {
			if step == steps/10 {
				resident = settle(t, &first)
			}
			if _, err := tr.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		after := settle(t, &last)
		if grown := int64(last.HeapAlloc) - int64(first.HeapAlloc); grown > heapSlack {
			t.Errorf("%d workers: the heap grew by %d bytes in %d steps", workers, grown, steps-steps/10)
		}
		if grown := (after - resident) * os.Getpagesize(); grown > residentSlack && !raceDetector {
			t.Errorf("%d workers: the resident memory grew by %d bytes in %d steps", workers, grown, steps-steps/10)
		}
		t.Logf("%d workers: heap %d to %d bytes, resident %d to %d pages, %d bytes of garbage a step", workers, first.HeapAlloc,
			last.HeapAlloc, resident, after, (last.TotalAlloc-first.TotalAlloc)/uint64(steps-steps/10))
		tr.Close()
	}
}
