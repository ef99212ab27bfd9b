package released

import "regexp"

// The files of a released model.
const (
	ImageFile     = "model.clm"
	ConfigFile    = "config.yaml"
	TokenizerFile = "tokenizer.json"
	CardFile      = "README.md"
	FactsFile     = "release.json"
)

// hashed are the files that the facts list with their hashes.
var hashed = []string{ImageFile, ConfigFile, TokenizerFile, CardFile}

const (
	// Kind marks the facts as ours.
	Kind = "chiplm release"
	// Version is raised when an old reader would misunderstand a released model.
	Version = 1
)

// Facts are what is known of a released model. The same run gives the same facts.
type Facts struct {
	Kind          string `json:"kind"`
	Version       int    `json:"version"`
	Name          string `json:"name"`
	Parameters    int    `json:"parameters"`
	VocabSize     int    `json:"vocab_size"`
	ContextLength int    `json:"context_length"` // tokens
	Weights       string `json:"weights"`        // bits and groups, for people
	ImageBytes    int64  `json:"image_bytes"`
	BytesPerToken int64  `json:"bytes_read_per_token"` // weights and scales, every neuron and output row read
	PostTraining  bool   `json:"post_training_quantisation"`

	Text     Text    `json:"training_text"`
	Training Trained `json:"training"`
	Score    Score   `json:"score"`
	Sample   Sample  `json:"sample"`

	Digest          string          `json:"golden_digest"` // of the golden run, computed by the training graph
	ModelSHA256     string          `json:"model_sha256"`  // of the weights as they were trained
	ConfigSHA256    string          `json:"config_sha256"`
	TokenizerSHA256 string          `json:"tokenizer_sha256"`
	Files           map[string]File `json:"files"`
}

// Text is the text that a model was trained on.
type Text struct {
	Name    string `json:"name"`
	SHA256  string `json:"sha256"`
	Stories int64  `json:"stories"`
	Bytes   int64  `json:"bytes"`  // raw, of the stories
	Tokens  int64  `json:"tokens"` // of one pass
	Licence string `json:"licence"`
	Source  string `json:"source,omitempty"` // where it is from, for people

	// Corpus and Valid are what chiplm train was given, without the folders: a part of a text is given as the whole. Valid is
	// empty where the held-out stories were the other part. Both are empty in releases of older programs.
	Corpus string `json:"corpus,omitempty"`
	Valid  string `json:"valid,omitempty"`
}

// Trained says how a model was trained.
type Trained struct {
	Tokens  int64  `json:"tokens"`
	Steps   int    `json:"steps"`
	Planned int    `json:"planned_steps,omitempty"` // 0: all of them were taken
	Seed    int64  `json:"seed"`
	Program string `json:"program"` // version of chiplm that trained

	Teacher *Teacher `json:"teacher,omitempty"` // nil where the text alone taught
}

// Teacher is a model whose distributions a model learned from beside the text.
type Teacher struct {
	Run         string  `json:"run"` // name of its run, or released/NAME
	ModelSHA256 string  `json:"model_sha256"`
	Share       float64 `json:"share"`          // of its distributions in what training aimed at
	From        float64 `json:"from,omitempty"` // share of the steps before which it was not heard
}

// Score is what the C engine scored on held-out stories, with the weights and the arithmetic of the chip.
type Score struct {
	Stories            string  `json:"stories"` // name of the held-out text
	SHA256             string  `json:"stories_sha256"`
	Count              int     `json:"stories_count"` // the first so many
	Bytes              int64   `json:"bytes"`         // raw, of these stories
	Tokens             int64   `json:"tokens"`
	TextBytesPerToken  float64 `json:"text_bytes_per_token"`
	NatsPerToken       float64 `json:"nats_per_token"`
	BitsPerByte        float64 `json:"bits_per_byte"`
	BitsPerByteWithEnd float64 `json:"bits_per_byte_with_end"`
}

// Sample is a text that the model wrote.
type Sample struct {
	Prompt      string  `json:"prompt"`
	Temperature float64 `json:"temperature"`
	TopK        int     `json:"topk"`
	Seed        uint64  `json:"seed"`
	Text        string  `json:"text"` // without the prompt
}

// File is a file's size and SHA-256.
type File struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Passes is how often training went through its text.
func (f *Facts) Passes() float64 { return float64(f.Training.Tokens) / float64(max(f.Text.Tokens, 1)) }

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidName says whether a released model may be called so: the name is that of a folder, and is typed.
func ValidName(name string) bool { return validName.MatchString(name) }
