package configs

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Limits on sizes. They lie far above what a microcontroller holds; their work is to keep every product of sizes below
// far inside an int64, so that a mistyped size is refused and never overflows, and to lie within the engine's own limits
// (engine/image.c), so that a model that was trained is never one that no image can hold.
const (
	MaxVocab      = 1 << 20
	MaxWidth      = 1 << 15 // d_model, d_ff, context_length
	MaxLayers     = 1 << 8
	MaxPLEDim     = 1 << 12
	MaxExperts    = 1 << 8
	MaxNgramRows  = 1 << 24
	MaxParameters = 1 << 31

	minNormEps = 0x1p-64 // the engine's least factor
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// fault is a broken rule: the keys it is about, the likeliest culprit first.
type fault struct {
	keys    []string
	problem string
}

// Validate refuses sizes that cannot be a model and settings that cannot train one. The error is an [*Error] that names
// the key; files get the position added by [Load] and [Parse].
func (c *Config) Validate() error {
	if f := c.check(); f != nil {
		return &Error{Key: f.keys[0], Problem: f.problem}
	}
	return nil
}

// check gives the first broken rule, or nil.
func (c *Config) check() *fault {
	for _, rule := range []func() *fault{c.checkName, c.checkSizes, c.checkQuant, c.checkTrain, c.checkTotal} {
		if f := rule(); f != nil {
			return f
		}
	}
	return nil
}

func (c *Config) checkName() *fault {
	if !nameForm.MatchString(c.Name) {
		return bad("it names the run's folder: use 1 to 64 letters, digits, '.', '_' or '-', not starting with '.' or '-'; have "+quote(c.Name), "name")
	}
	return nil
}

func (c *Config) checkSizes() *fault {
	sizes := []struct {
		key              string
		value, low, high int
	}{
		{"vocab_size", c.VocabSize, 257, MaxVocab},
		{"d_model", c.DModel, 2, MaxWidth},
		{"n_layers", c.NLayers, 1, MaxLayers},
		{"n_heads", c.NHeads, 1, MaxWidth},
		{"d_ff", c.DFF, 1, MaxWidth},
		{"context_length", c.ContextLength, 1, MaxWidth},
		{"ple_dim", c.PLEDim, 0, MaxPLEDim},
		{"ngram_rows", c.NgramRows, 0, MaxNgramRows},
		{"experts", c.Experts, 0, MaxExperts},
	}
	for _, s := range sizes {
		if s.value >= s.low && s.value <= s.high {
			continue
		}
		why := ""
		if s.key == "vocab_size" && s.value < s.low {
			why = " (256 bytes and the end of text need 257 entries)"
		}
		return bad(fmt.Sprintf("want %d to %d%s, have %d", s.low, s.high, why, s.value), s.key)
	}
	if c.DModel%c.NHeads != 0 {
		return bad(fmt.Sprintf("d_model %d does not divide into %d heads; choose n_heads among the divisors of d_model", c.DModel, c.NHeads),
			"n_heads", "d_model")
	}
	if d := c.DModel / c.NHeads; d%2 != 0 {
		return bad(fmt.Sprintf("head size d_model/n_heads = %d/%d = %d is odd; the rotary embedding needs pairs, so make it even", c.DModel, c.NHeads, d),
			"n_heads", "d_model")
	}
	if f := oneOf("activation", string(c.Activation), string(ReLU), string(SwiGLU)); f != nil {
		return f
	}
	if f := within("attention_scale", c.AttentionScale, 0.001, 1000); f != nil {
		return f
	}
	if f := within("rope_theta", c.RopeTheta, 1, 1e12); f != nil {
		return f
	}
	return within("norm_eps", c.NormEps, minNormEps, 1)
}

func (c *Config) checkQuant() *fault {
	w := c.Quant.Weights
	if f := checkWeights("quant.weights", &w.Bits, &w.Group, &w.Scale, &w.Clip); f != nil {
		return f
	}
	if b := c.Quant.Activations.Bits; b != 8 && b != 32 {
		return bad(fmt.Sprintf("want 8, or 32 for activations that stay float32; have %d", b), "quant.activations.bits")
	}
	for class := range c.Quant.Classes {
		if !slices.Contains(overridable, class) {
			return bad("no such class, or one that is float32 always", "quant.classes."+string(class))
		}
	}
	for _, class := range overridable {
		rule, ok := c.Quant.Classes[class]
		key := "quant.classes." + string(class)
		if ok && class == ClassHead && c.TieEmbeddings {
			return bad("the head is the token embedding (tie_embeddings: true); give this rule to the class embedding", key)
		}
		if f := checkWeights(key, rule.Bits, rule.Group, rule.Scale, rule.Clip); f != nil {
			return f
		}
	}
	if c.Quant.StartStep < 0 {
		return bad(fmt.Sprintf("want 0 or more, have %d", c.Quant.StartStep), "quant.start_step")
	}
	return nil
}

// checkWeights looks at the parts of a weight quantisation that are given.
func checkWeights(section string, bits, group *int, scale *ScaleType, clip *float64) *fault {
	if bits != nil && !slices.Contains([]int{2, 4, 8, 32}, *bits) {
		return bad(fmt.Sprintf("want 2, 4, 8, or 32 for weights that stay float32; have %d", *bits), section+".bits")
	}
	if group != nil && !slices.Contains([]int{0, 32, 64, 128}, *group) {
		return bad(fmt.Sprintf("want 32, 64, 128, or 0 for a whole row; have %d", *group), section+".group")
	}
	if scale != nil {
		if f := oneOf(section+".scale", string(*scale), string(ScaleF32), string(ScaleF16)); f != nil {
			return f
		}
	}
	if clip != nil {
		return within(section+".clip", *clip, 0.1, 1)
	}
	return nil
}

func (c *Config) checkTrain() *fault {
	t := &c.Train
	counts := []struct {
		key              string
		value, low, high int64
	}{
		{"train.batch_tokens", int64(t.BatchTokens), 1, 1 << 31},
		{"train.micro_batch", int64(t.MicroBatch), 1, 1 << 16},
		{"train.tokens", t.Tokens, 1, 1 << 50},
		{"train.seed", t.Seed, 0, math.MaxInt64},
		{"train.valid_every", int64(t.ValidEvery), 0, 1 << 50},
		{"train.valid_tokens", t.ValidTokens, 0, 1 << 50},
		{"train.sample_every", int64(t.SampleEvery), 0, 1 << 50},
		{"train.save_every", int64(t.SaveEvery), 0, 1 << 50},
		{"train.keep_last", int64(t.KeepLast), 1, 1 << 20},
		{"train.muon.steps", int64(t.Muon.Steps), 1, 100},
	}
	for _, n := range counts {
		if n.value < n.low || n.value > n.high {
			return bad(fmt.Sprintf("want %d to %d, have %d", n.low, n.high, n.value), n.key)
		}
	}
	if micro := int64(t.MicroBatch) * int64(c.ContextLength); int64(t.BatchTokens)%micro != 0 {
		return bad(fmt.Sprintf("%d tokens are not a whole number of micro-batches of micro_batch x context_length = %d x %d = %d tokens; the next one up is %d",
			t.BatchTokens, t.MicroBatch, c.ContextLength, micro, (int64(t.BatchTokens)/micro+1)*micro),
			"train.batch_tokens", "train.micro_batch", "context_length")
	}
	if t.Tokens < int64(t.BatchTokens) {
		return bad(fmt.Sprintf("%d tokens are less than one step of batch_tokens = %d", t.Tokens, t.BatchTokens), "train.tokens", "train.batch_tokens")
	}
	if f := oneOf("train.schedule", t.Schedule, "linear", "cosine", "constant"); f != nil {
		return f
	}
	if f := oneOf("train.optimizer", t.Optimizer, "adamw", "muon"); f != nil {
		return f
	}
	const belowOne = 1 - 1e-9
	numbers := []struct {
		key              string
		value, low, high float64
	}{
		{"quant.start", c.Quant.Start, 0, belowOne},
		{"train.lr", t.LR, 1e-12, 100},
		{"train.warmup", t.Warmup, 0, 1},
		{"train.min_lr", t.MinLR, 0, 1},
		{"train.beta1", t.Beta1, 0, belowOne},
		{"train.beta2", t.Beta2, 0, belowOne},
		{"train.eps", t.Eps, 1e-30, 1},
		{"train.weight_decay", t.WeightDecay, 0, 100},
		{"train.clip", t.Clip, 0, 1e9},
		{"train.router_aux", t.RouterAux, 0, 1e9},
		{"train.distill", t.Distill, 0, 1},
		{"train.distill_start", t.DistillStart, 0, belowOne},
		{"train.muon.lr", t.Muon.LR, 1e-12, 100},
		{"train.muon.momentum", t.Muon.Momentum, 0, belowOne},
		{"train.muon.weight_decay", t.Muon.WeightDecay, 0, 100},
		{"train.lr_scale.embedding", t.LRScale.Embedding, 0, 1000},
		{"train.lr_scale.head", t.LRScale.Head, 0, 1000},
		{"train.lr_scale.ple_table", t.LRScale.PLETable, 0, 1000},
		{"train.lr_scale.norm", t.LRScale.Norm, 0, 1000},
	}
	for _, n := range numbers {
		if f := within(n.key, n.value, n.low, n.high); f != nil {
			return f
		}
	}
	return nil
}

// checkTotal runs last: every size is inside its limit, so the counts below stay under 2^50.
func (c *Config) checkTotal() *fault {
	tensors := c.Tensors()
	most, total := tensors[0], 0
	for _, t := range tensors {
		if total += t.Len(); t.Len() >= most.Len() {
			most = t
		}
	}
	if total > MaxParameters {
		keys := []string{"d_ff", "experts", "d_model", "n_layers"}
		if most.Name == NgramTable {
			keys = []string{"ngram_rows", "d_model"}
		}
		if most.Name == TokenEmbedding || most.Name == PLETable || most.Name == Head {
			keys = []string{"vocab_size", "ple_dim", "d_model", "n_layers"}
		}
		return bad(fmt.Sprintf("the model would have %d parameters (%s alone %v), more than the limit of %d; make the sizes smaller",
			total, most.Name, most.Shape, MaxParameters), keys...)
	}
	return nil
}

func bad(problem string, keys ...string) *fault { return &fault{keys: keys, problem: problem} }

func within(key string, value, low, high float64) *fault {
	if value >= low && value <= high { // false for NaN
		return nil
	}
	return bad(fmt.Sprintf("want %g to %g, have %g", low, high, value), key)
}

func oneOf(key, value string, known ...string) *fault {
	if slices.Contains(known, value) {
		return nil
	}
	hint := ""
	if near := Nearest(value, known); near != "" && len(known) > 1 {
		hint = "; did you mean " + near + "?"
	}
	return bad("want "+strings.Join(known, " or ")+", have "+quote(value)+hint, key)
}

// CheckName refuses what cannot name a run and its folder.
func CheckName(name string) error {
	if f := (&Config{Name: name}).checkName(); f != nil {
		return errors.New(f.problem)
	}
	return nil
}
