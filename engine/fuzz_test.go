package engine

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

// seedImages are images of a few kilobytes that hold, between them, every kind of tensor in every format: hostile ones are
// made of them.
func seedImages(tb testing.TB) map[string]*testImage {
	tb.Helper()
	out := map[string]*testImage{}
	add := func(name string, c configs.Config, bits, group int, scale configs.ScaleType, clusters int, f func(*configs.Config)) {
		c.Quant.Weights = configs.WeightQuant{Bits: bits, Group: group, Scale: scale}
		if f != nil {
			f(&c)
		}
		m := newTestModel(tb, c, 17)
		if clusters > 0 {
			m.cluster(tb, clusters)
		}
		out[name] = m.image(tb, randomIDs(min(3, c.ContextLength), c.VocabSize, 1))
	}
	swiglu := func(c *configs.Config) { c.Activation, c.TieEmbeddings, c.QKNorm = configs.SwiGLU, false, true }
	add("least", shape(1, 2, 1, 1, 1, 1, 0, 0), 4, 0, configs.ScaleF32, 0, nil)
	add("relu", shape(13, 8, 1, 2, 9, 9, 0, 0), 4, 64, configs.ScaleF32, 0, nil)
	add("experts", shape(12, 8, 1, 2, 7, 9, 0, 3), 4, 0, configs.ScaleF16, 0, nil)
	add("untied", shape(14, 12, 1, 2, 10, 9, 0, 0), 8, 0, configs.ScaleF16, 0, swiglu)
	add("ple", shape(16, 16, 1, 1, 12, 9, 6, 0), 2, 32, configs.ScaleF32, 0, func(c *configs.Config) { c.QKNorm = true })
	add("groups", shape(12, 8, 1, 1, 70, 9, 0, 0), 4, 32, configs.ScaleF32, 0, swiglu)
	add("columns", shape(12, 8, 1, 1, 70, 9, 0, 0), 2, 32, configs.ScaleF16, 0, nil)
	add("bigrams", shape(12, 8, 1, 2, 6, 9, 3, 0), 4, 32, configs.ScaleF16, 0, func(c *configs.Config) { c.NgramRows = 11 })
	add("wide", shape(12, 32, 1, 1, 5, 9, 0, 0), 4, 0, configs.ScaleF16, 0, nil)
	add("wider", shape(8, 64, 1, 1, 3, 6, 0, 0), 2, 32, configs.ScaleF32, 0, nil)
	add("layers", shape(12, 4, 2, 1, 6, 9, 13, 2), 4, 0, configs.ScaleF32, 0, swiglu)
	m := newTestModel(tb, shape(280, 2, 1, 1, 1, 3, 0, 0), 17)
	m.tokn = trainTokenizer(tb, []byte(rhyme+rhyme), 280).AppendImage(nil)
	out["text"] = m.image(tb, randomIDs(3, 280, 1))
	add("clusters", shape(20, 8, 1, 2, 6, 9, 0, 0), 4, 0, configs.ScaleF32, 4, nil)
	return out
}

// writeSeeds writes them to a folder and returns their paths, the smallest first.
func writeSeeds(t *testing.T, dir string) []string {
	t.Helper()
	images := seedImages(t)
	var paths []string
	for name, im := range images {
		path := filepath.Join(dir, name+".clm")
		if err := os.WriteFile(path, im.bytes, 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	size := func(path string) int { return len(images[strings.TrimSuffix(filepath.Base(path), ".clm")].bytes) }
	slices.SortFunc(paths, func(a, b string) int {
		if d := size(a) - size(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return paths
}

// TestWriteSeeds writes them to the folder that CHIPLM_FUZZ_SEEDS names, for make fuzz.
func TestWriteSeeds(t *testing.T) {
	dir := os.Getenv("CHIPLM_FUZZ_SEEDS")
	if dir == "" {
		t.Skip("CHIPLM_FUZZ_SEEDS names no folder: this is a part of make fuzz")
	}
	writeSeeds(t, dir)
}

// feedHostile runs the programs of testdata/hostile without libFuzzer: every truncation of a small image, changes of
// images, and calls with right and wrong arguments, drawn from fixed seeds. make fuzz runs more, guided by what they reach.
func feedHostile(t *testing.T, core, flags []string) {
	files, err := filepath.Glob("testdata/hostile/*")
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, file := range files { // opened, so that go test knows to run again when one has changed
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".c") && filepath.Base(file) != "fuzzer.c" {
			sources = append(sources, file)
		}
	}
	program := link(t, core, flags, sources...)
	seeds := writeSeeds(t, t.TempDir())
	images, calls := "10000", "5000"
	if testing.Short() {
		images, calls = "1000", "500"
	}
	reached := func(lines []string) (cases, accepted int, statuses map[int]int) {
		if _, err := fmt.Sscanf(lines[0][strings.Index(lines[0], ":"):], ": %d cases, %d accepted", &cases, &accepted); err != nil {
			t.Fatalf("%q: %v", lines[0], err)
		}
		statuses = map[int]int{}
		for _, line := range lines[1:] {
			if strings.Contains(line, "positions") {
				continue
			}
			var status, n int
			if _, err := fmt.Sscanf(line, "status %d: %d", &status, &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			statuses[status] = n
		}
		return cases, accepted, statuses
	}

	lines := runCore(t, program, append([]string{"images", images, "1"}, seeds...)...)
	t.Log(lines[0])
	cases, accepted, statuses := reached(lines)
	if accepted*3 < cases {
		t.Errorf("%d of %d images are accepted: too few to tell much of what runs", accepted, cases)
	}
	for status, err := range imageErrors() {
		if statuses[status] == 0 && !testing.Short() {
			t.Errorf("no image was refused with %q", err)
		}
	}

	lines = runCore(t, program, append([]string{"calls", calls, "1"}, seeds...)...)
	t.Log(lines[0])
	_, accepted, statuses = reached(lines)
	if accepted < 1000 {
		t.Errorf("%d calls are accepted", accepted)
	}
	for status, err := range callErrors() {
		if statuses[status] == 0 && !testing.Short() {
			t.Errorf("no call failed with %q", err)
		}
	}
}

// imageErrors are the errors that an image alone can cause, by their status.
func imageErrors() map[int]error {
	return statusesOf(ErrSize, ErrMagic, ErrVersion, ErrHeaderBytes, ErrFlags, ErrFileBytes, ErrFileCRC, ErrReserved, ErrSections,
		ErrSectionCRC, ErrModel, ErrTensorName, ErrTensorShape, ErrTensorBits, ErrTensorFloat, ErrTensorRange, ErrTensorCRC, ErrCode, ErrScale,
		ErrFloat, ErrRope, ErrTokenizer, ErrGolden, ErrClusters)
}

// callErrors are the errors that calls on a good image can cause.
func callErrors() map[int]error {
	return statusesOf(ErrArgument, ErrAlignment, ErrSize, ErrFileBytes, ErrArena, ErrID, ErrContext, ErrNotFinite, ErrTemperature, ErrClusters,
		ErrTokenizer, ErrRoom)
}

func statusesOf(errs ...error) map[int]error {
	out := map[int]error{}
	for status, err := range sentinels {
		if slices.Contains(errs, err) {
			out[int(status)] = err
		}
	}
	return out
}

// FuzzCalls calls the methods of an engine with arguments that the bytes of the input say, and wants each to succeed or to
// fail as documented: no panic, no error of another kind, and the position where it was.
func FuzzCalls(f *testing.F) {
	seeds := seedImages(f)
	var images []*Image
	for _, name := range []string{"relu", "experts", "clusters"} {
		images = append(images, openTest(f, seeds[name].bytes))
	}
	f.Add([]byte("some calls, of which most are right"))
	f.Add([]byte{0, 3, 1, 1, 5, 2, 2, 2, 9, 9, 9, 3, 3, 3, 4, 4, 4, 250, 251, 252, 253, 254, 255})
	f.Fuzz(func(t *testing.T, input []byte) {
		next := func() int {
			if len(input) == 0 {
				return 0
			}
			b := input[0]
			input = input[1:]
			return int(b)
		}
		number := func(usual int) int { // mostly below usual
			if b := next(); b > 240 {
				return []int{-1, math.MinInt, math.MaxInt, 1 << 32, 1<<32 + 1, usual, usual + 1, MaxBatch, MaxThreads + 1}[b%9]
			}
			return next() % max(usual, 1)
		}
		im := images[next()%len(images)]
		v, context := im.Model().VocabSize, im.Model().ContextLength
		e, err := New(im, Options{Batch: number(9), Path: Path(number(5)), Threads: number(3), Dense: next()%2 == 0})
		if err != nil {
			if !errors.Is(err, ErrArgument) {
				t.Fatal(err)
			}
			return
		}
		defer e.Close()
		var rng RNG
		for range 30 {
			if len(input) == 0 {
				break
			}
			ids := make([]int32, next()%(context+3))
			for i := range ids {
				ids[i] = int32(next() % v)
			}
			if wrong := next(); wrong > 240 && len(ids) > 0 {
				ids[next()%len(ids)] = int32(number(v))
			}
			logits := make([]float32, min(max(number(3), 0), 2)*v)
			before := e.Position()
			var err error
			switch next() % 10 {
			case 0:
				err = e.Forward(ids, nil)
			case 1:
				err = e.Forward(ids, logits)
			case 2:
				err = e.ForwardLast(ids, logits)
			case 3, 4:
				var best []TokenLogit
				search := Search{Full: next()%2 == 0, Clusters: number(6), Margin: []float32{1, 1, 0, 0.5, -1, 2, float32(math.NaN())}[next()%7]}
				if best, err = e.ForwardBest(ids, search, number(v+1)); err == nil {
					_, err = Draw(best, float32(next()-3)/100, &rng)
				}
			case 5:
				e.Reset()
				before = 0
			case 6:
				_, err = Sample(logits, float32(next()-3)/100, number(v+1), &rng)
			case 7:
				_, err = NLL(logits, int32(number(v)))
			case 8:
				if _, err := e.Reads(); err != nil {
					t.Fatal(err)
				}
				e.ClearReads()
			case 9:
				_, err = Top(logits, number(v+1))
			}
			known := err == nil
			for _, sentinel := range sentinels {
				known = known || errors.Is(err, sentinel)
			}
			if !known {
				t.Fatalf("an error that wraps no sentinel: %v", err)
			}
			if p := e.Position(); p < before || p > context || err != nil && p != before && !errors.Is(err, ErrTemperature) {
				t.Fatalf("position %d after %d: %v", p, before, err)
			}
		}
	})
}
