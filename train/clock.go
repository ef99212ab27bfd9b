package train

import (
	"fmt"
	"io"
	"time"
)

// use is what time is spent on.
type use int

const (
	opening    use = iota // settings, corpora, held-out stories, weights, a checkpoint to go on from
	tokenizing            // training the tokenizer, or reading it
	encoding              // turning the corpus into tokens, or opening the shard
	training
	validating
	sampling
	saving // waiting for checkpoints; they are written while training goes on
	other  // metrics, progress, the loss curve
	uses
)

// clock divides the time of a run among its uses. It charges all the time since it was last asked to one of them, so
// that nothing is left out or counted twice.
type clock struct {
	start, last time.Time
	spent       [uses]time.Duration
}

func newClock() *clock {
	now := time.Now()
	return &clock{start: now, last: now}
}

// charge says what the time since the last charge went to.
func (c *clock) charge(u use) {
	now := time.Now()
	c.spent[u] += now.Sub(c.last)
	c.last = now
}

// seconds is all the time charged so far.
func (c *clock) seconds() float64 { return c.last.Sub(c.start).Seconds() }

// Times says where the time of a session went, in seconds. The parts add up to Summary.Seconds.
type Times struct {
	Opening    float64 `json:"opening"`    // settings, corpora, held-out stories, weights, a checkpoint to go on from
	Tokenizer  float64 `json:"tokenizer"`  // training it, or reading it
	Tokens     float64 `json:"tokens"`     // turning the corpus into tokens, or opening those there are
	Training   float64 `json:"training"`   // the steps
	Validation float64 `json:"validation"` //
	Sampling   float64 `json:"sampling"`   //
	Saving     float64 `json:"saving"`     // waiting for checkpoints: they are written while training goes on
	Other      float64 `json:"other"`      // metrics, progress, the loss curve
}

func (c *clock) times() Times {
	s := func(u use) float64 { return c.spent[u].Seconds() }
	return Times{Opening: s(opening), Tokenizer: s(tokenizing), Tokens: s(encoding), Training: s(training),
		Validation: s(validating), Sampling: s(sampling), Saving: s(saving), Other: s(other)}
}

// print writes the shares of the time.
func (t Times) print(w io.Writer) {
	start := t.Opening + t.Tokenizer + t.Tokens
	total := start + t.Training + t.Validation + t.Sampling + t.Saving + t.Other
	share := func(seconds float64) float64 { return 100 * seconds / max(total, 1e-9) }
	fmt.Fprintf(w, "time:       %.1f s: training %.1f %%, validation %.1f %%, sampling %.1f %%, saving %.1f %%,\n", total,
		share(t.Training), share(t.Validation), share(t.Sampling), share(t.Saving))
	fmt.Fprintf(w, "            start-up %.1f %% (tokenizer %.1f s, tokens %.1f s), other %.1f %%\n", share(start), t.Tokenizer,
		t.Tokens, share(t.Other))
}
