package train

import (
	"math"
	"testing"

	"github.com/chiplm/chiplm/configs"
)

func TestScheduleShapes(t *testing.T) {
	const steps = 1000
	for _, kind := range []string{ScheduleLinear, ScheduleCosine, ScheduleConstant} {
		s, err := NewSchedule(configs.Train{LR: 0.5, Warmup: 0.1, MinLR: 0.1, Schedule: kind}, steps)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.LR(0); math.Abs(got-0.005) > 1e-12 {
			t.Errorf("%s: first step %v, want one hundredth of the peak", kind, got)
		}
		if got := s.LR(99); got != 0.5 {
			t.Errorf("%s: the warm-up ends at %v", kind, got)
		}
		for i := 1; i < steps; i++ {
			if rising := s.LR(i) > s.LR(i-1); rising != (i < 100) {
				t.Fatalf("%s: at step %d the rate goes from %v to %v", kind, i, s.LR(i-1), s.LR(i))
			}
		}
		middle, end := s.LR(549)/2+s.LR(550)/2, s.LR(steps-1)
		wantMiddle := map[string]float64{ScheduleLinear: 0.25, ScheduleCosine: 0.275, ScheduleConstant: 0.5}[kind]
		wantEnd := map[string]float64{ScheduleLinear: 0, ScheduleCosine: 0.05, ScheduleConstant: 0.5}[kind]
		if math.Abs(middle-wantMiddle) > 1e-6 {
			t.Errorf("%s: half way down %v, want %v", kind, middle, wantMiddle)
		}
		if end < wantEnd || end > wantEnd+0.0005 || (kind == ScheduleLinear && end == 0) {
			t.Errorf("%s: last step %v, want a little over %v", kind, end, wantEnd)
		}
		if past := s.LR(steps + 5); math.Abs(past-wantEnd) > 1e-12 {
			t.Errorf("%s: past the end %v, want %v", kind, past, wantEnd)
		}
	}
}

func TestScheduleEdges(t *testing.T) {
	for _, c := range []struct {
		steps  int
		warmup float64
	}{{1, 0}, {1, 1}, {1, 0.1}, {2, 0.5}, {7, 1}} {
		for _, kind := range []string{ScheduleLinear, ScheduleCosine, ScheduleConstant} {
			s, err := NewSchedule(configs.Train{LR: 1, Warmup: c.warmup, Schedule: kind}, c.steps)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.steps {
				if lr := s.LR(i); !(lr > 0 && lr <= 1) {
					t.Errorf("%s, %d steps, warm-up %v: step %d has rate %v", kind, c.steps, c.warmup, i, lr)
				}
			}
		}
	}
	if _, err := NewSchedule(configs.Train{Schedule: "square"}, 1); err == nil {
		t.Error("an unknown schedule is taken")
	}
}
