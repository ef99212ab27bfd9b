package check

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/chiplm/chiplm/engine/pie"
)

// TestKernels holds each kernel to its twin: on the shapes of the reference model and on random ones, with every kind of
// values.
func TestKernels(t *testing.T) {
	random, edge := 10_000, 250
	if testing.Short() {
		random, edge = 300, 25
	}
	for _, k := range pie.Kernels() {
		t.Run(k.Symbol, func(t *testing.T) {
			t.Parallel()
			c, err := New(k)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(11, 12))
			run := func(s pie.Shape, v pie.Values) {
				if _, err := c.Run(t.Context(), s, v, r.Uint64()); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range k.Shapes {
				run(s, pie.Random)
				for _, v := range pie.EdgeValues() {
					run(s, v)
				}
			}
			for range random {
				run(k.Any(r), pie.Random)
			}
			for _, v := range pie.EdgeValues() {
				for range edge {
					run(k.Any(r), v)
				}
			}
		})
	}
}

// TestMutation puts a sample of faults into all kernels. CHIPLM_PIE_FAULTS=1 tries all of them, a larger number one in so
// many.
func TestMutation(t *testing.T) {
	m := Mutation{Cases: 1500, Every: 4, Seed: 1}
	if testing.Short() {
		m.Every = 40
	}
	if s := os.Getenv("CHIPLM_PIE_FAULTS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("CHIPLM_PIE_FAULTS=%s: wants a number from 1 on", s)
		}
		m.Every = n
	}
	reasons, err := KnownReasons()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range Files(pie.Kernels()) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			r, err := Mutate(t.Context(), file, m, reasons)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d faults, %d found", r.Tried, r.Caught)
			for _, s := range r.Survivors {
				if s.Reason == "" {
					t.Errorf("%s:%d: no case shows %s -> %s (reached: %v)", s.File, s.Line, s.Was, s.Now, !s.Unreach)
				}
			}
		})
	}
}
