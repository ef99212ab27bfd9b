package results

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Largest bounds every figure of a run: sums of squares stay finite, and no honest figure comes near.
const Largest = 1e15

// check refuses what no run can have. A run has a score or says why it has none; of one that failed no figure is used.
func (r *Run) check() error {
	switch {
	case r.Arm == "":
		return errors.New("it names no arm")
	case strings.TrimSpace(r.Arm) == "":
		return errors.New("the arm has no name")
	case r.Failure != "":
		return nil
	}
	q, c, t := r.Quality, r.Cost, r.Training
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"bits_per_byte", q.BitsPerByte}, {"nats_per_token", q.NatsPerToken}, {"text_bytes_per_token", q.TextBytesPerToken},
		{"parameters", float64(c.Parameters)}, {"image_bytes", float64(c.ImageBytes)}, {"bytes_per_token", float64(c.BytesPerToken)},
		{"measured_per_token", c.MeasuredPer}, {"tokens_per_second", c.TokensPerSecond}, {"text_bytes_per_second", c.TextPerSecond},
		{"training.tokens", float64(t.Tokens)}, {"training.loss", t.Loss},
	} {
		if !(f.value >= 0 && f.value <= Largest) {
			return fmt.Errorf("%s is %g: not a possible figure", f.name, f.value)
		}
	}
	switch {
	case q.BitsPerByte == 0:
		return errors.New("it has neither a score (quality.bits_per_byte) nor a failure")
	case q.TextBytesPerToken == 0:
		return fmt.Errorf("text_bytes_per_token is 0 beside a score of %g bits per byte", q.BitsPerByte)
	}
	for _, p := range r.Curve {
		if !(math.Abs(p.Loss) <= Largest) || p.Tokens < 0 || p.Tokens > Largest {
			return fmt.Errorf("the curve has the point %d, %g: not a possible loss", p.Tokens, p.Loss)
		}
	}
	return nil
}
