// Package configs defines what a model file says: the sizes of the model, how its weights and activations are
// quantised, and how it is trained. It reads and checks YAML model files, embeds the ones that ship with chiplm, and
// lists the tensors a configuration implies ([Config.Tensors]), so that training, export and the cost model agree on
// names, shapes and bits without loading a single weight.
package configs

import "math"

// Activation names the non-linearity of the gated feed-forward.
type Activation string

// The activations a model file may ask for.
const (
	ReLU   Activation = "relu"   // max(W_g x, 0) * W_u x
	SwiGLU Activation = "swiglu" // silu(W_g x) * W_u x
)

// ScaleType is how the scales of quantised weights are stored.
type ScaleType string

// The scale types a model file may ask for.
const (
	ScaleF32 ScaleType = "f32"
	ScaleF16 ScaleType = "f16"
)

// Config is a resolved model file.
type Config struct {
	Name           string     `yaml:"name"`
	VocabSize      int        `yaml:"vocab_size"`
	DModel         int        `yaml:"d_model"`
	NLayers        int        `yaml:"n_layers"`
	NHeads         int        `yaml:"n_heads"`
	DFF            int        `yaml:"d_ff"`
	ContextLength  int        `yaml:"context_length"`
	PLEDim         int        `yaml:"ple_dim"`    // 0: no per-layer embeddings
	NgramRows      int        `yaml:"ngram_rows"` // of the hashed bigram table; 0: none
	TieEmbeddings  bool       `yaml:"tie_embeddings"`
	Activation     Activation `yaml:"activation"`
	Experts        int        `yaml:"experts"` // 0 or 1: dense feed-forward
	QKNorm         bool       `yaml:"qk_norm"`
	AttentionScale float64    `yaml:"attention_scale"` // factor on the scores, beside 1/sqrt(d_model/n_heads)
	RopeTheta      float64    `yaml:"rope_theta"`
	NormEps        float64    `yaml:"norm_eps"`
	Quant          Quant      `yaml:"quant"`
	Train          Train      `yaml:"train"`
}

// ScoreScale is what a dot product of a query and a key is multiplied with: attention_scale / sqrt(d_model / n_heads),
// computed in double and rounded once.
func (c *Config) ScoreScale() float32 {
	return float32(c.AttentionScale / math.Sqrt(float64(c.DModel/c.NHeads)))
}

// Quant says how a model is quantised, in training and on the chip alike.
type Quant struct {
	Weights     WeightQuant               `yaml:"weights"`
	Activations ActivationQuant           `yaml:"activations"`
	Classes     map[TensorClass]ClassRule `yaml:"classes"`    // overrides of Weights per tensor class
	Start       float64                   `yaml:"start"`      // share of the training steps, below 1, after which quantisation begins
	StartStep   int                       `yaml:"start_step"` // the same as a number of steps; the later of both counts
}

// FloatSteps is the number of training steps before quantisation begins. quant.start leaves at least one step with it;
// quant.start_step may exceed the steps of the run.
func (c *Config) FloatSteps() int {
	return max(c.Quant.StartStep, c.Train.stepsBefore(c.Quant.Start))
}

// UntaughtSteps is the number of training steps before the teacher is heard, where there is one.
func (c *Config) UntaughtSteps() int { return c.Train.stepsBefore(c.Train.DistillStart) }

// stepsBefore is the number of steps of a run in a share of it below 1, which leaves at least one.
func (t *Train) stepsBefore(share float64) int {
	return int(share * float64(t.Steps()))
}

// Steps is the number of optimiser steps of a run; 0 where the settings name no batch.
func (t *Train) Steps() int {
	if t.BatchTokens < 1 {
		return 0
	}
	return int((t.Tokens + int64(t.BatchTokens) - 1) / int64(t.BatchTokens))
}

// WeightQuant is the quantisation of one weight matrix.
type WeightQuant struct {
	Bits  int       `yaml:"bits"`  // 2, 4, 8, or 32 for weights that stay float32
	Group int       `yaml:"group"` // columns that share a scale: 32, 64, 128, or 0 for a whole row
	Scale ScaleType `yaml:"scale"`
	Clip  float64   `yaml:"clip"` // share of a group's largest magnitude that has the largest code; what is beyond is cut off; 0 is taken as 1
}

// ClassRule overrides parts of a [WeightQuant]; a nil field inherits.
type ClassRule struct {
	Bits  *int       `yaml:"bits"`
	Group *int       `yaml:"group"`
	Scale *ScaleType `yaml:"scale"`
	Clip  *float64   `yaml:"clip"`
}

// ActivationQuant is the quantisation of the vectors that enter matrix products: 8 bits, or 32 for none
// (a model of float activations can be trained and scored, but not exported).
type ActivationQuant struct {
	Bits int `yaml:"bits"`
}

// Train says how a model is trained.
type Train struct {
	Tokens       int64   `yaml:"tokens"`         // total training tokens
	BatchTokens  int     `yaml:"batch_tokens"`   // tokens per optimiser step
	MicroBatch   int     `yaml:"micro_batch"`    // sequences per micro-batch; batch_tokens = k * micro_batch * context_length
	StoriesApart bool    `yaml:"stories_apart"`  // no sequence goes across the end of a story
	LR           float64 `yaml:"lr"`             // peak learning rate
	Warmup       float64 `yaml:"warmup"`         // share of the steps spent rising linearly to lr
	Schedule     string  `yaml:"schedule"`       // "linear" (to zero), "cosine" (to min_lr) or "constant"
	MinLR        float64 `yaml:"min_lr"`         // as a share of lr, for cosine
	Optimizer    string  `yaml:"optimizer"`      // "adamw", or "muon": Muon on the matrices of the layers, AdamW on the rest
	Muon         Muon    `yaml:"muon"`           //
	LRScale      LRScale `yaml:"lr_scale"`       //
	Beta1        float64 `yaml:"beta1"`          //
	Beta2        float64 `yaml:"beta2"`          //
	Eps          float64 `yaml:"eps"`            //
	WeightDecay  float64 `yaml:"weight_decay"`   // on matrices, not on norms
	Clip         float64 `yaml:"clip"`           // largest global gradient norm; 0: no clipping
	RouterAux    float64 `yaml:"router_aux"`     // weight of the load-balancing loss with experts
	Distill      float64 `yaml:"distill"`        // share of a teacher's distributions in what is aimed at, 0 to 1; 0: no teacher
	DistillStart float64 `yaml:"distill_start"`  // share of the training steps, below 1, after which the teacher is heard
	Seed         int64   `yaml:"seed"`           //
	ValidEvery   int     `yaml:"valid_every"`    // steps between validations; 0: only at the end
	ValidTokens  int64   `yaml:"valid_tokens"`   // tokens scored per validation
	SampleEvery  int     `yaml:"sample_every"`   // steps between sampled stories, and at the end; 0: none
	SaveEvery    int     `yaml:"save_every"`     // steps between checkpoints; 0: only at the end
	KeepLast     int     `yaml:"keep_last"`      // checkpoints kept
	ZeroInitProj bool    `yaml:"zero_init_proj"` // output projections of attention and feed-forward start at zero
}

// Muon says how Muon trains the matrices of the layers, when it is the optimiser.
type Muon struct {
	LR            float64 `yaml:"lr"`             // peak learning rate; the schedule is that of Train
	Momentum      float64 `yaml:"momentum"`       // decay of the gradient's mean, in Nesterov's form
	Steps         int     `yaml:"steps"`          // Newton-Schulz steps
	WeightDecay   float64 `yaml:"weight_decay"`   //
	NormaliseRows bool    `yaml:"normalise_rows"` // rows of an update are brought to equal size (NorMuon)
}

// LRScale multiplies the learning rate of AdamW, by class of tensor.
type LRScale struct {
	Embedding float64 `yaml:"embedding"`
	Head      float64 `yaml:"head"` // of an untied head
	PLETable  float64 `yaml:"ple_table"`
	Norm      float64 `yaml:"norm"`
}

// Of is the factor of a class; 1 for classes that have none.
func (s LRScale) Of(class TensorClass) float64 {
	switch class {
	case ClassEmbedding:
		return s.Embedding
	case ClassHead:
		return s.Head
	case ClassPLETable:
		return s.PLETable
	case ClassNorm:
		return s.Norm
	}
	return 1
}
