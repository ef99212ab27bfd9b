package eval

import (
	"slices"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/placement"
)

// Count is what a run read, counted by the engine where it reads, beside what the planner predicts for the conditions of
// the run. The engine's count has no part in the prediction.
type Count struct {
	Conditions placement.Conditions `json:"conditions"` // watched from outside
	Rows       []CountRow           `json:"rows"`       // a kind of tensor in a tier
	Tiers      []CountRow           `json:"tiers"`
	Total      CountRow             `json:"total"`
	OneByOne   int64                `json:"one_by_one"`       // predicted for the same tokens fed singly, every neuron and the full head read
	Layers     []CountLayer         `json:"layers,omitempty"` // with a relu gate alone
}

// CountRow is a part of a count. Bytes are those of the whole run.
type CountRow struct {
	Kind       string `json:"kind,omitempty"`
	Tier       string `json:"tier,omitempty"` // of the image's tensor table; "image" for rotary tables, "cache" for keys and values
	Counted    int64  `json:"counted"`
	Predicted  int64  `json:"predicted"`
	Difference int64  `json:"difference"` // counted less predicted
	Dense      int64  `json:"dense"`      // predicted if the same passes read every neuron

	PerToken          float64 `json:"counted_per_token"`
	PredictedPerToken float64 `json:"predicted_per_token"`
}

// CountLayer is how much of the feed-forward of a layer was read.
type CountLayer struct {
	Silent   float64 `json:"silent"`    // share of neurons whose gate was not open, over all positions
	Unused   float64 `json:"unused"`    // share of neurons that were 0 once quantised
	UpRead   float64 `json:"up_read"`   // share of the rows of up that were read, over all passes
	DownRead float64 `json:"down_read"` // share of the columns of down
	Bytes    int64   `json:"bytes"`     // of gate, up and down
	Dense    int64   `json:"dense"`     // the same with every neuron read
}

// The tiers of what is no tensor, beside those of the image's table.
const (
	tierImage = "image" // the rotary tables stay in the image
	tierCache = "cache" // the keys and values of a sequence
)

// The kinds of tensors, in the order of a report.
const (
	kindEmbedding = "token embedding, rows"
	kindPairs     = "bigram table, rows"
	kindTable     = "per-layer table, rows"
	kindProject   = "per-layer projection"
	kindAttention = "attention"
	kindRouter    = "router"
	kindGate      = "gate"
	kindUp        = "up"
	kindDown      = "down"
	kindPLE       = "per-layer gate and output"
	kindHead      = "head"
	kindSearch    = "bounds of the head's rows"
	kindNorms     = "norms"
	kindRotary    = "rotary tables"
	kindCache     = "keys and values"
)

var kinds = []string{kindEmbedding, kindPairs, kindTable, kindProject, kindAttention, kindRouter, kindGate, kindUp, kindDown, kindPLE,
	kindHead, kindSearch, kindNorms, kindRotary, kindCache}

// kindOf is the kind of a tensor; that of a tied embedding is the head.
func kindOf(t configs.Tensor, tied bool) string {
	if t.Class == image.ClassClusters {
		return kindSearch
	}
	_, part := configs.SplitTensor(t.Name)
	switch part {
	case configs.TokenEmbedding:
		if tied {
			return kindHead
		}
		return kindEmbedding
	case configs.NgramTable:
		return kindPairs
	case configs.PLETable:
		return kindTable
	case configs.PLEProjection:
		return kindProject
	case configs.QKV, configs.AttentionOutput:
		return kindAttention
	case configs.Router:
		return kindRouter
	case configs.Gate:
		return kindGate
	case configs.Up:
		return kindUp
	case configs.Down:
		return kindDown
	case configs.PLEGate, configs.PLEOutput:
		return kindPLE
	case configs.Head:
		return kindHead
	}
	return kindNorms
}

// newCount holds a count against the prediction for a run of an image that holds these tensors.
func newCount(c *configs.Config, tensors []engine.Tensor, reads *engine.Reads, run placement.Conditions) *Count {
	count := &Count{Conditions: run}
	predicted, dense := placement.Predict(c, run), placement.Predict(c, run.Dense(c))
	add := func(kind, tier string, counted, predicted, dense int64) {
		if counted == 0 && predicted == 0 && dense == 0 {
			return // such as the bounds of a head that was read in full
		}
		for _, row := range []*CountRow{countRow(&count.Rows, kind, tier), countRow(&count.Tiers, "", tier), &count.Total} {
			row.Counted += counted
			row.Predicted += predicted
			row.Dense += dense
		}
	}
	for i, t := range append(c.Tensors(), image.HeadTensors(c.VocabSize, c.DModel, run.Search.Clusters)...) {
		tier, kind := image.Tier(tensors[i].Tier).String(), kindOf(t, c.TieEmbeddings)
		rows := int64(0) // of a tied embedding, read as a table
		if t.Name == configs.TokenEmbedding && c.TieEmbeddings {
			rows = predicted.Tensors[i] - predicted.Head
			add(kindEmbedding, tier, rows, rows, rows)
		}
		add(kind, tier, reads.Tensors[i]-rows, predicted.Tensors[i]-rows, dense.Tensors[i]-rows)
	}
	add(kindRotary, tierImage, reads.Rope, predicted.Rotary, dense.Rotary)
	add(kindCache, tierCache, reads.Cache, predicted.Cache, dense.Cache)
	order := []string{image.SRAM.String(), image.PSRAM.String(), image.Flash.String(), tierImage, tierCache}
	slices.SortStableFunc(count.Tiers, func(a, b CountRow) int { return slices.Index(order, a.Tier) - slices.Index(order, b.Tier) })
	slices.SortStableFunc(count.Rows, func(a, b CountRow) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
	for _, rows := range [][]CountRow{count.Rows, count.Tiers} {
		for i := range rows {
			rows[i].finish(run.Positions)
		}
	}
	count.Total.finish(run.Positions)
	count.OneByOne = oneByOne(c, run)
	if c.Activation == configs.ReLU {
		count.Layers = countLayers(c, reads, run, &dense)
	}
	return count
}

// countRow finds the row of a kind in a tier, or adds it.
func countRow(rows *[]CountRow, kind, tier string) *CountRow {
	i := slices.IndexFunc(*rows, func(r CountRow) bool { return r.Kind == kind && r.Tier == tier })
	if i < 0 {
		i = len(*rows)
		*rows = append(*rows, CountRow{Kind: kind, Tier: tier})
	}
	return &(*rows)[i]
}

func (r *CountRow) finish(positions int64) {
	r.Difference = r.Counted - r.Predicted
	if positions > 0 {
		r.PerToken = float64(r.Counted) / float64(positions)
		r.PredictedPerToken = float64(r.Predicted) / float64(positions)
	}
}

// oneByOne is what the tokens of a run read when they are fed singly, with every neuron, and the full head as often.
func oneByOne(c *configs.Config, run placement.Conditions) int64 {
	single := placement.Conditions{Positions: run.Positions, Passes: run.Positions, Heads: run.Heads, HeadRows: run.Heads * int64(c.VocabSize),
		Attended: run.Attended, Layers: make([]placement.Neurons, c.NLayers)}
	for l := range single.Layers {
		single.Layers[l].Experts = run.Positions
	}
	p := placement.Predict(c, single.Dense(c))
	return p.Total()
}

func countLayers(c *configs.Config, reads *engine.Reads, run placement.Conditions, dense *placement.Prediction) []CountLayer {
	out := make([]CountLayer, c.NLayers)
	share := func(n, of int64) float64 {
		if of == 0 {
			return 0
		}
		return float64(n) / float64(of)
	}
	f := int64(c.DFF)
	for l := range out {
		out[l] = CountLayer{
			Silent:   1 - share(reads.Open[l], run.Positions*f),
			Unused:   1 - share(reads.Used[l], run.Positions*f),
			UpRead:   share(reads.UpRows[l], run.Layers[l].Experts*f),
			DownRead: share(reads.DownColumns[l], run.Layers[l].Experts*f),
		}
	}
	for i, t := range c.Tensors() {
		switch l, part := configs.SplitTensor(t.Name); part {
		case configs.Gate, configs.Up, configs.Down:
			out[l].Bytes += reads.Tensors[i]
			out[l].Dense += dense.Tensors[i]
		}
	}
	return out
}
