package results

// Run is one trained and scored model.
type Run struct {
	Sweep string `json:"sweep"` // name of the sweep
	Arm   string `json:"arm"`   // name of the variant; runs of one arm differ in their seed only
	Order int    `json:"order"` // place of the arm in the sweep's file, from 0, when the run was finished
	Seed  int64  `json:"seed"`  // train.seed
	// Baseline names the arm of the sweep that the others are compared with; empty: the sweep names none. Where lines
	// disagree, the last was written last.
	Baseline string `json:"baseline,omitempty"`
	Folder   string `json:"folder"` // of the run, with its checkpoint and metrics, as it was given

	// Failure says why there is no score, and is empty where there is one: the training diverged. [Read] leaves such runs
	// out, [Failures] gives them.
	Failure string `json:"failure,omitempty"`

	Program         string `json:"program"`                  // version of the program, with its commit where it is known
	Config          string `json:"config"`                   // the resolved configuration, as YAML
	ConfigSHA256    string `json:"config_sha256"`            // of Config
	ArmSHA256       string `json:"arm_sha256"`               // of the settings that decide the weights, a teacher's included, but for the seed
	Teacher         string `json:"teacher,omitempty"`        // the arm whose run of this seed it learned from; empty: none
	TeacherSHA256   string `json:"teacher_sha256,omitempty"` // of that run's weights; empty too in lines of older programs
	TokenizerSHA256 string `json:"tokenizer_sha256"`         //
	ModelSHA256     string `json:"model_sha256"`             // of the checkpoint's weights
	CorpusSHA256    string `json:"corpus_sha256"`            //
	Corpus          string `json:"corpus"`                   // its name, for people

	HeldOut   HeldOut `json:"held_out"`
	Quality   Quality `json:"quality"`
	Cost      Cost    `json:"cost"`
	Training  Trained `json:"training"`
	Curve     []Point `json:"curve"`      // training loss, smoothed, some hundred points at most
	ValidLoss []Point `json:"valid_loss"` // of the validations on the way
}

// HeldOut says which stories a run was scored on. Only runs with equal stories compare.
type HeldOut struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"` // of the stories that were scored
	Stories int64  `json:"stories"`
	Bytes   int64  `json:"bytes"` // raw, before tokenising
}

// Quality is the score on the held-out stories.
type Quality struct {
	ScoredBy           string  `json:"scored_by"` // "engine": the quantised image, as a chip computes it; "graph": float, cannot be exported
	Tokens             int64   `json:"tokens"`
	TextBytesPerToken  float64 `json:"text_bytes_per_token"`
	NatsPerToken       float64 `json:"nats_per_token"`
	BitsPerByte        float64 `json:"bits_per_byte"`
	BitsPerByteWithEnd float64 `json:"bits_per_byte_with_end"`
}

// Cost is what a token takes.
type Cost struct {
	Parameters      int     `json:"parameters"`
	ImageBytes      int64   `json:"image_bytes"`           // 0 when there is no image
	BytesPerToken   int64   `json:"bytes_per_token"`       // weights and scales of one token, every neuron and output row read
	MeasuredPer     float64 `json:"measured_per_token"`    // the same with silent neurons left out, as measured; 0: not measured
	LiveNeurons     float64 `json:"live_neurons"`          // share of neurons behind a ReLU gate that spoke; 0: no such gate, or not measured
	Target          string  `json:"target"`                // chip of the prediction; empty: none
	TokensPerSecond float64 `json:"tokens_per_second"`     // predicted, mean over the context; 0: none
	TextPerSecond   float64 `json:"text_bytes_per_second"` // TokensPerSecond x text bytes per token
}

// Trained says how a run was trained.
type Trained struct {
	Tokens       int64   `json:"tokens"`
	CorpusTokens int64   `json:"corpus_tokens"` // of one pass
	Steps        int     `json:"steps"`
	Loss         float64 `json:"loss"` // nats per token, mean over the last tenth of the steps
	Seconds      float64 `json:"seconds"`
	Workers      int     `json:"workers"`
}

// Point is a value after so many training tokens.
type Point struct {
	Tokens int64   `json:"tokens"`
	Loss   float64 `json:"loss"` // nats per token
}
