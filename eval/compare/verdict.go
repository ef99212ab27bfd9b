package compare

import (
	"fmt"
	"math"
	"strings"
)

// same is the relative difference of costs up to which they are called the same.
const same = 0.005

// Difference is what an arm is against the baseline.
type Difference struct {
	BitsPerByte  Estimate  `json:"bits_per_byte"`
	NatsPerToken *Estimate `json:"nats_per_token"` // nil: the tokenizers differ, so nats per token do not compare
	Read         float64   `json:"read"`           // bytes read per byte of text, arm / baseline; 0: not known of both
	Speed        float64   `json:"speed"`          // bytes of text per second, arm / baseline; 0: not predicted for both
}

func (a *Arm) against(base *Arm, noise Noise) *Difference {
	d := &Difference{BitsPerByte: difference(a.score, base.score, noise)}
	// On the same stories and with one tokenizer, nats per token are bits per byte times a constant.
	if unit := base.NatsPerToken.Mean / base.BitsPerByte.Mean; a.runs[0].TokenizerSHA256 == base.runs[0].TokenizerSHA256 && unit > 0 {
		nats := d.BitsPerByte.scaled(unit)
		d.NatsPerToken = &nats
	}
	if a.ReadPerByte > 0 && base.ReadPerByte > 0 {
		d.Read = a.ReadPerByte / base.ReadPerByte
	}
	if a.TextPerSecond > 0 && base.TextPerSecond > 0 && a.Target == base.Target {
		d.Speed = a.TextPerSecond / base.TextPerSecond
	}
	return d
}

// verdict says it in words.
func (d *Difference) verdict() string {
	e, unit := d.BitsPerByte, "bits per byte"
	if d.NatsPerToken != nil {
		e, unit = *d.NatsPerToken, "nats"
	}
	clauses := append(d.bytes(), d.pace()...)
	size := fmt.Sprintf("%.4f %s", math.Abs(e.Value), unit)
	better, cost := e.Value < 0, d.cost()
	word := "worse"
	if better {
		word = "better"
	}
	if e.HalfWidth != nil {
		digits := decimals(*e.HalfWidth)
		size = fmt.Sprintf("%.*f +- %.*f %s", digits, math.Abs(e.Value), digits, *e.HalfWidth, unit)
	}
	var head string
	switch {
	case e.HalfWidth == nil:
		head = fmt.Sprintf("%s by %s in one run each, so perhaps by chance", word, size)
		if e.Value == 0 {
			head = "the same score in one run each"
		}
	case !e.Clear():
		sign := ""
		if better {
			sign = "-"
		} else if e.Value > 0 {
			sign = "+"
		}
		head = fmt.Sprintf("no difference larger than the noise (%s%s)", sign, size)
	case better && cost < 0, !better && cost > 0:
		head = fmt.Sprintf("%s on both: by %s", word, size)
	default:
		head = fmt.Sprintf("%s by %s", word, size)
	}
	return strings.Join(append([]string{head}, clauses...), ", ")
}

// cost is below 0 where the arm is cheaper, above where it is dearer: by its speed, or by the bytes it reads where no speed
// is predicted.
func (d *Difference) cost() int {
	ratio := d.Read
	if d.Speed > 0 {
		ratio = 1 / d.Speed
	}
	switch {
	case ratio == 0 || math.Abs(ratio-1) < same:
		return 0
	case ratio < 1:
		return -1
	}
	return 1
}

func (d *Difference) bytes() []string {
	switch change := d.Read - 1; {
	case d.Read == 0:
		return nil
	case math.Abs(change) < same:
		return []string{"reads the same bytes"}
	case d.Read >= 2:
		return []string{fmt.Sprintf("costs %.1f times the bytes", d.Read)}
	case change > 0:
		return []string{fmt.Sprintf("costs %s more bytes", percent(change))}
	default:
		return []string{fmt.Sprintf("saves %s of the bytes", percent(change))}
	}
}

func (d *Difference) pace() []string {
	switch change := d.Speed - 1; {
	case d.Speed == 0:
		return nil
	case math.Abs(change) < same:
		return []string{"as fast"}
	case d.Speed >= 2:
		return []string{fmt.Sprintf("%.1f times as fast", d.Speed)}
	case change > 0:
		return []string{fmt.Sprintf("%s faster", percent(change))}
	default:
		return []string{fmt.Sprintf("%s slower", percent(change))}
	}
}
