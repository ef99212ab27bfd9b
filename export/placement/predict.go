package placement

import (
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/qat"
)

// Conditions are what a run asks of an engine. They are whole numbers over the whole run, so that what [Predict] makes of
// them can be held against a count to the byte; those of several runs add up.
type Conditions struct {
	Positions int64 `json:"positions"` // fed
	Passes    int64 `json:"passes"`    // blocks in which they went through the weights together
	Heads     int64 `json:"heads"`     // passes that computed logits, or searched for the best
	HeadRows  int64 `json:"head_rows"` // rows of the head that these read: vocab_size each with the full head
	Attended  int64 `json:"attended"`  // positions attended over, the own one included, added up over the positions

	Search Search    `json:"search"` // of a clustered head
	Layers []Neurons `json:"layers"` // what is read of the feed-forward of each layer
}

// Search is what searches of a clustered head read.
type Search struct {
	Clusters int      `json:"clusters"` // that the head has; 0: it is read in full only
	Searches int64    `json:"searches"` // of the passes that read the head, those that did not read it in full
	Rows     int64    `json:"rows"`     // of the head that they read
	Blocks   [2]int64 `json:"blocks"`   // bounds of rows, at both levels
}

// Neurons is what is read of the feed-forward of a layer. A dense layer counts as one expert.
type Neurons struct {
	Experts int64 `json:"experts"` // reads of an expert's gate: one for each pass and expert that a position of it chose
	Up      int64 `json:"up"`      // rows of up
	Down    int64 `json:"down"`    // columns of down
	Groups  int64 `json:"groups"`  // groups of columns of down in which one of these lies: each has scales
}

// Feed adds a pass of n positions, the first of which is position, over every neuron, with the full head if logits are
// asked for. With experts, each position of a pass is taken to choose another one, until all are chosen.
func (r *Conditions) Feed(c *configs.Config, position, n int, logits bool) {
	r.Outside(c, position, n, logits)
	if r.Layers == nil {
		r.Layers = make([]Neurons, c.NLayers)
	}
	for l := range r.Layers {
		for range min(n, max(c.Experts, 1)) {
			r.Layers[l].Add(AllNeurons(c))
		}
	}
}

// Outside adds what a pass asks of all but the feed-forward.
func (r *Conditions) Outside(c *configs.Config, position, n int, logits bool) {
	r.Positions += int64(n)
	r.Passes++
	if logits {
		r.Heads++
		r.HeadRows += int64(c.VocabSize)
	}
	for i := range n {
		r.Attended += int64(position + i + 1)
	}
}

// Add adds another run of the same image.
func (r *Conditions) Add(other Conditions) {
	r.Positions += other.Positions
	r.Passes += other.Passes
	r.Heads += other.Heads
	r.HeadRows += other.HeadRows
	r.Attended += other.Attended
	r.Search.Clusters = other.Search.Clusters
	r.Search.Searches += other.Search.Searches
	r.Search.Rows += other.Search.Rows
	for level, n := range other.Search.Blocks {
		r.Search.Blocks[level] += n
	}
	if r.Layers == nil {
		r.Layers = make([]Neurons, len(other.Layers))
	}
	for l := range other.Layers {
		r.Layers[l].Add(other.Layers[l])
	}
}

// Dense is the same run with every neuron read of the experts that were.
func (r Conditions) Dense(c *configs.Config) Conditions {
	all := AllNeurons(c)
	layers := make([]Neurons, len(r.Layers))
	for l, n := range r.Layers {
		layers[l] = Neurons{Experts: n.Experts, Up: n.Experts * all.Up, Down: n.Experts * all.Down, Groups: n.Experts * all.Groups}
	}
	r.Layers = layers
	return r
}

// AllNeurons is one expert read whole.
func AllNeurons(c *configs.Config) Neurons {
	f := int64(c.DFF)
	return Neurons{Experts: 1, Up: f, Down: f, Groups: int64(qat.Groups(c.WeightQuant(configs.ClassTrunk), c.DFF))}
}

// Add adds reads of the same layer.
func (n *Neurons) Add(other Neurons) {
	n.Experts += other.Experts
	n.Up += other.Up
	n.Down += other.Down
	n.Groups += other.Groups
}

// Prediction is the bytes that a run reads.
type Prediction struct {
	Tensors []int64 `json:"tensors"` // of each tensor, in the order of the image's table
	Head    int64   `json:"head"`    // as the head, of the tensor that is the head
	Rotary  int64   `json:"rotary"`  // of the rotary tables
	Cache   int64   `json:"cache"`   // of keys and values, with their scales
}

// Total is the sum of all bytes.
func (p *Prediction) Total() int64 {
	sum := p.Rotary + p.Cache
	for _, b := range p.Tensors {
		sum += b
	}
	return sum
}

// Predict works out what a run reads from its conditions and the sizes of the model: codes, scales and the padding of
// rows, each pass reading every row that it needs once. A norm and a router are read once a pass, a table a row for each
// position. With silent neurons, gate is read whole; of up the rows, and of down, where it is stored transposed, the
// columns that the conditions name.
func Predict(c *configs.Config, r Conditions) Prediction {
	var p Prediction
	for _, t := range c.Budget().Tensors {
		row := (t.Codes + t.Scales) / int64(t.Rows()) // whole: rows are alike
		whole := t.Codes + t.Scales
		var read int64
		switch layer, part := configs.SplitTensor(t.Name); {
		case t.Name == configs.TokenEmbedding:
			read = r.Positions * row
			if c.TieEmbeddings {
				p.Head = r.HeadRows * row
				read += p.Head
			}
		case t.Name == configs.Head:
			p.Head = r.HeadRows * row
			read = p.Head
		case t.Name == configs.PLETable, t.Name == configs.NgramTable:
			read = r.Positions * row
		case t.Name == configs.OutputNorm:
			read = r.Heads * whole
		case part == configs.Gate:
			read = r.Layers[layer].Experts * int64(c.DFF) * row
		case part == configs.Up:
			read = r.Layers[layer].Up * row
		case part == configs.Down && t.Block > 0:
			read = r.Layers[layer].columns(t)
		case part == configs.Down:
			read = r.Layers[layer].Experts * int64(c.DModel) * row
		default:
			read = r.Passes * whole
		}
		p.Tensors = append(p.Tensors, read)
	}
	if r.Search.Clusters > 0 {
		p.Tensors = append(p.Tensors, r.Search.tensors(c)...)
	}
	width := int64(c.DModel / c.NHeads)
	p.Rotary = r.Positions * width * 4                                          // half a head of cosines and of sines
	p.Cache = r.Attended * int64(c.NLayers) * int64(c.NHeads) * (2*width + 2*4) // codes of a key and a value, and a scale each
	return p
}

// tensors is the bytes read of the tensors that the clusters bring.
func (s Search) tensors(c *configs.Config) []int64 {
	var out []int64
	for _, t := range image.HeadTensors(c.VocabSize, c.DModel, s.Clusters) {
		stored := image.Tensor{Rows: t.Rows(), Cols: t.Cols(), Bits: t.Quant.Bits, Group: t.Quant.Group, ScaleType: image.ScaleTypeOf(t.Quant)}
		row := int64(stored.Stride())
		read := s.Searches * stored.StoredBytes() // rotation and bounds
		switch t.Name {
		case image.HeadBlocks0:
			read = s.Blocks[0] * row
		case image.HeadBlocks1:
			read = s.Blocks[1] * row
		case image.HeadOrder:
			read = s.Rows * row // the id of a row, and what lies beside it
		}
		out = append(out, read)
	}
	return out
}

// columns is the bytes read of a down that is stored transposed.
func (n Neurons) columns(t configs.TensorBudget) int64 {
	column, group := ColumnBytes(t)
	return n.Down*column + n.Groups*group
}

// ColumnBytes is the bytes of a column of a tensor that is stored transposed, and of the scales of a group of columns.
func ColumnBytes(t configs.TensorBudget) (column, group int64) {
	blocks := int64(t.Rows() / t.Block)
	return t.Codes / (blocks * int64(t.Cols())), t.Scales / (blocks * int64(qat.Groups(t.Quant, t.Cols())))
}
