package targets

import (
	"fmt"
	"slices"
)

// Profile is an engine on the chip: the cycles of its kernels, the work that no kernel stands for, and what a token is taken
// to read of what need not be read whole, where nobody measured it.
type Profile struct {
	Name     string   `yaml:"name" json:"name"`
	About    string   `yaml:"about" json:"about"`
	Kernels  []Kernel `yaml:"kernels" json:"kernels"`
	Fixed    Fixed    `yaml:"fixed" json:"fixed"`
	HandOver Figure   `yaml:"handover_cycles" json:"handover_cycles"` // of a job to the other cores
	Reads    Reads    `yaml:"reads" json:"reads"`
}

// Work is what a kernel does.
type Work string

// The kinds of work of a token. What counts as a row, a group and a value is in brackets.
const (
	Product  Work = "product"       // a matrix and a vector [rows of the matrix; groups that share a scale; weights]
	Listed   Work = "listed"        // a product of the rows that a list names; without a kernel of its own each row is a product
	Columns  Work = "columns"       // listed columns of a transposed matrix [columns; scales of the groups they lie in; weights]
	Scores   Work = "scores"        // a head's query and all keys [positions; -; multiply-accumulates]
	Softmax  Work = "softmax"       // from a head's scores to shares that are quantised, and from sums to a result [-; a head's elements; positions]
	Mix      Work = "mix"           // a head's weighted sum of all values [positions; a head's elements; multiply-accumulates]
	Norm     Work = "norm"          // [vectors; -; elements], and so below
	HeadNorm Work = "head_norm"     // of a query or key, without gain; without a kernel of its own as norm
	HeadCode Work = "head_quantise" // of a query, key or value; without a kernel of its own as quantise
	Quantise Work = "quantise"      // floats to 8-bit codes
	Rotate   Work = "rotate"        // rotary embedding
	Gate     Work = "gate"          // relu of the gate times up
	SiLU     Work = "silu"          // silu of the gate times up
	GELU     Work = "gelu"          // of the gate of the per-layer embedding, times the embedding
	PLEMix   Work = "ple_mix"       // the two parts of a per-layer embedding
	Add      Work = "add"           // to the residual stream
	Unpack   Work = "unpack"        // a row of a table to floats [rows; groups that share a scale; elements]
	Means    Work = "means"         // a query and the means of clusters, and the choice of the best clusters [clusters; -; weights]
	Boxes    Work = "boxes"         // bounds of clusters, and their order [clusters]
	Blocks   Work = "blocks"        // bounds of rows [rows; -; codes], a call for a cluster or for a row alone
	Best     Work = "best"          // keeping the best tokens, and drawing one [logits that are computed one at a time; -; logits]
)

// Works lists all kinds of work.
func Works() []Work {
	return []Work{Product, Listed, Columns, Scores, Softmax, Mix, Norm, HeadNorm, Quantise, HeadCode, Rotate, Gate, SiLU, GELU,
		PLEMix, Add, Unpack, Means, Boxes, Blocks, Best}
}

// instead is the kind of work whose kernels do for another that has none.
var instead = map[Work]Work{Listed: Product, HeadNorm: Norm, HeadCode: Quantise}

// Bits are those that a weight may have; each needs a kernel for products.
var bits = []int{2, 4, 8, 32}

// Kernel is the cost of a kind of work on one core, in cycles: Call for each call, Row for each row, and so on.
type Kernel struct {
	Work    Work    `yaml:"work" json:"work"`
	Bits    int     `yaml:"bits,omitempty" json:"bits,omitempty"`       // of the weights of a product or of columns
	Columns int     `yaml:"columns,omitempty" json:"columns,omitempty"` // of the matrix that it is for; 0: any
	Grouped int     `yaml:"grouped,omitempty" json:"grouped,omitempty"` // columns that share a scale, that it is for; 0: any
	Stage   string  `yaml:"stage,omitempty" json:"stage,omitempty"`     // of the work: stages add up, kernels of one stage are alternatives
	Symbol  string  `yaml:"symbol,omitempty" json:"symbol,omitempty"`   // of the function in the firmware; empty: it is compiled C
	Split   bool    `yaml:"split" json:"split"`                         // over all cores; otherwise one works and the others wait
	Call    float64 `yaml:"call" json:"call"`
	Row     float64 `yaml:"row" json:"row"`
	Group   float64 `yaml:"group" json:"group"`
	Value   float64 `yaml:"value" json:"value"`
	Kind    string  `yaml:"kind" json:"kind"` // as of a [Figure]
	Source  string  `yaml:"source" json:"source"`
}

// String names a kernel: its symbol, or its work.
func (k *Kernel) String() string {
	if k.Symbol != "" {
		return k.Symbol
	}
	s := string(k.Work)
	if k.Work.weights() {
		s += fmt.Sprintf(" with %d bits", k.Bits)
	}
	return s
}

// Cycles is what work of a size costs one core.
func (k *Kernel) Cycles(calls, rows, groups, values float64) float64 {
	return k.Call*calls + k.Row*rows + k.Group*groups + k.Value*values
}

// Fixed is the work that depends on neither weights nor position, and that no kernel stands for.
type Fixed struct {
	UsPerLayer Figure `yaml:"us_per_layer" json:"us_per_layer"`
	UsPerToken Figure `yaml:"us_per_token" json:"us_per_token"`
	Covers     []Work `yaml:"covers" json:"covers"` // kinds of work that are part of it, and have no kernel
}

// Reads is what a token is taken to read, as shares, before anybody measured it for the model at hand.
type Reads struct {
	Search   Search `yaml:"search" json:"search"`     // how the output layer is searched
	Clusters int    `yaml:"clusters" json:"clusters"` // of the output layer
	Least    int    `yaml:"least" json:"least"`       // vocabulary from which on it is searched
	Most     int    `yaml:"most" json:"most"`         // best tokens that are searched for; for more it is read in full. 0: any number
	Rows     Figure `yaml:"rows" json:"rows"`         // of the output layer that are read in full
	Blocks   Figure `yaml:"blocks" json:"blocks"`     // of its rows whose first bound is read; with search: bounds
	Seconds  Figure `yaml:"seconds" json:"seconds"`   // whose second bound is read
	Neurons  Figure `yaml:"neurons" json:"neurons"`   // behind a relu gate that speak
}

// Searches reports whether the engine on the chip searches for so many tokens.
func (r *Reads) Searches(k int) bool { return r.Search != SearchNone && (r.Most == 0 || k <= r.Most) }

// Search is a way to search the output layer.
type Search string

// The ways to search the output layer.
const (
	SearchNone   Search = "none"   // it is read in full
	SearchMeans  Search = "means"  // the means of clusters are scored, and the best clusters read in full
	SearchBounds Search = "bounds" // bounds of clusters and rows prove which rows need not be read
)

// For finds the kernels of a kind of work, one for each of its stages: of those that fit, the first listed. bits, columns and
// grouped are those of a matrix; the last is the number of columns that share a scale. Some kinds of work without a kernel
// are done by those of another, which the kernels then name. None: fixed work covers it.
func (p *Profile) For(w Work, bits, columns, grouped int) []*Kernel {
	var out []*Kernel
	for i := range p.Kernels {
		k := &p.Kernels[i]
		fits := k.Work == w && (k.Bits == bits || !k.Work.weights()) && (k.Columns == 0 || k.Columns == columns) && (k.Grouped == 0 || k.Grouped == grouped)
		if fits && !slices.ContainsFunc(out, func(x *Kernel) bool { return x.Stage == k.Stage }) {
			out = append(out, k)
		}
	}
	if other, ok := instead[w]; ok && len(out) == 0 {
		return p.For(other, bits, columns, grouped)
	}
	return out
}

// weights reports whether a kind of work depends on the bits of weights.
func (w Work) weights() bool { return w == Product || w == Listed || w == Columns }

// Profile finds a profile by name; the empty name means the first. nil if there is none.
func (t *Target) Profile(name string) *Profile {
	for i := range t.Profiles {
		if name == "" || t.Profiles[i].Name == name {
			return &t.Profiles[i]
		}
	}
	return nil
}

// ProfileNames lists the profiles.
func (t *Target) ProfileNames() []string {
	var names []string
	for i := range t.Profiles {
		names = append(names, t.Profiles[i].Name)
	}
	return names
}

// covers says whether fixed work stands for a kind of work.
func (p *Profile) covers(w Work) bool { return slices.Contains(p.Fixed.Covers, w) }
