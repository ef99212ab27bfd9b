package train

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
)

// The schedules a model file may ask for.
const (
	ScheduleLinear   = "linear"   // after the warm-up, down to zero
	ScheduleCosine   = "cosine"   // half a cosine down to min_lr
	ScheduleConstant = "constant" // stays at the peak
)

// Schedule gives the learning rate of a step. It is a pure function of the step, so that a resumed run needs no state.
type Schedule struct {
	kind   string
	peak   float64
	floor  float64 // cosine ends here
	warmup int     // steps spent rising
	steps  int     // in all
}

// NewSchedule lays out train.schedule over a number of steps.
func NewSchedule(t configs.Train, steps int) (Schedule, error) {
	s := Schedule{kind: t.Schedule, peak: t.LR, floor: t.LR * t.MinLR, steps: steps}
	switch t.Schedule {
	case ScheduleLinear, ScheduleCosine, ScheduleConstant:
	default:
		return s, fmt.Errorf("train.schedule: %q is unknown: use linear, cosine or constant", t.Schedule)
	}
	s.warmup = min(int(math.Round(t.Warmup*float64(steps))), steps)
	return s, nil
}

// LR is the learning rate of a step; the first step is 0. Steps past the end have the rate of the end.
//
// The warm-up rises linearly: its step i has (i+1)/warmup of the peak. The decay takes the middle of each step, so that
// the last step of a linear decay is small but not lost.
func (s Schedule) LR(step int) float64 {
	if step < s.warmup {
		return s.peak * float64(step+1) / float64(s.warmup)
	}
	if s.kind == ScheduleConstant {
		return s.peak
	}
	decay := s.steps - s.warmup
	progress := 1.0
	if decay > 0 {
		progress = min((float64(step-s.warmup)+0.5)/float64(decay), 1)
	}
	if s.kind == ScheduleCosine {
		return s.floor + float64((s.peak-s.floor)*0.5*(1+math.Cos(math.Pi*progress))) // not fused, as some processors would
	}
	return s.peak * (1 - progress)
}
