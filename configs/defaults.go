package configs

// Defaults is what a model file gets for the keys it leaves out. The six sizes in [Required] have no default: a model
// file (or one that it extends) must say them. The name's default is the file's own name without .yaml.
func Defaults() *Config {
	return &Config{
		PLEDim:         0,
		NgramRows:      0,
		TieEmbeddings:  true,
		Activation:     ReLU,
		Experts:        0,
		QKNorm:         true,
		AttentionScale: 1,
		RopeTheta:      10000,
		NormEps:        1e-6,
		Quant: Quant{
			Weights:     WeightQuant{Bits: 4, Group: 64, Scale: ScaleF32, Clip: 1},
			Activations: ActivationQuant{Bits: 8},
			StartStep:   0,
		},
		Train: Train{
			Tokens:       4_000_000,
			BatchTokens:  4096,
			MicroBatch:   4,
			LR:           0.005,
			Warmup:       0.1,
			Schedule:     "linear",
			MinLR:        0.1,
			Optimizer:    "adamw",
			Muon:         Muon{LR: 0.02, Momentum: 0.95, Steps: 5, WeightDecay: 0.05},
			LRScale:      LRScale{Embedding: 1, Head: 1, PLETable: 1, Norm: 1},
			Beta1:        0.9,
			Beta2:        0.95,
			Eps:          1e-8,
			WeightDecay:  0.1,
			Clip:         1,
			RouterAux:    0.01,
			Seed:         1,
			ValidEvery:   500,
			ValidTokens:  65536,
			SampleEvery:  500,
			SaveEvery:    200,
			KeepLast:     2,
			ZeroInitProj: true,
		},
	}
}

// Required lists the keys without a default.
func Required() []string {
	return []string{"vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "context_length"}
}
