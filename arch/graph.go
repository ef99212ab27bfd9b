package arch

import (
	"errors"
	"fmt"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/kernels"
	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/fakequant"
)

// Options say what a graph computes.
type Options struct {
	Batch, Seq int  // sequences, and positions of each
	Train      bool // gradients are wanted
	Exact      bool // logits bit-equal to the engine's: products on integer codes
	Float      bool // nothing is quantised
	Logits     bool // keep all logits (not with Train)

	// Distill is the weight of a teacher's distributions in what training aims at, from 0 (no teacher) to 1 (nothing
	// else): see [Graph.Teach].
	Distill float64

	Profile *profile.Profile // where the time of the runs is charged, or nil
}

// Graph is a model ready to run on batches of one shape.
type Graph struct {
	opt       Options
	vocab     int
	weights   *Weights
	ids       []int32
	ngram     []int32 // rows of the bigram table, one a position
	targets   []int32
	ngramRows uint32
	vm        gorgonia.VM
	grads     gorgonia.Nodes
	slices    [][]float32  // of grads: the operations' own buffers, the same in every run
	tables    []*tableRows // of each gradient, nil where any element may not be zero
	rows      [][]int32
	traces    []trace
	steps     []Step
	head      *head
	routers   []*experts
	current   *sequences

	quantised []*fakequant.Op
}

// sequences says how a graph's batch divides into sequences in the run under way.
type sequences struct{ lengths []int }

// building guards the nodes that Gorgonia shares between graphs while they are built.
var building sync.Mutex

// Build makes the graph of a model. The weights are shared and read in place: changes between runs are seen. It fails
// when the options contradict each other or do not fit the configuration or the weights.
func Build(cfg *configs.Config, w *Weights, opt Options) (*Graph, error) {
	if err := checkOptions(cfg, w, opt); err != nil {
		return nil, fmt.Errorf("build graph of %s: %w", cfg.Name, err)
	}
	building.Lock()
	defer building.Unlock()
	g, err := build(cfg, w, opt)
	if err != nil {
		return nil, fmt.Errorf("build graph of %s: %w", cfg.Name, err)
	}
	return g, nil
}

func checkOptions(cfg *configs.Config, w *Weights, opt Options) error {
	dim := cfg.DModel / max(cfg.NHeads, 1)
	switch {
	case opt.Batch < 1 || opt.Seq < 1:
		return fmt.Errorf("a batch of %d sequences of %d tokens is impossible", opt.Batch, opt.Seq)
	case opt.Seq > cfg.ContextLength:
		return fmt.Errorf("sequences of %d tokens are longer than context_length %d", opt.Seq, cfg.ContextLength)
	case opt.Exact && opt.Float:
		return errors.New("exact mode is about quantised products: it cannot be joined with float")
	case opt.Exact && opt.Train:
		return errors.New("exact mode has no gradients: train without it")
	case opt.Train && opt.Logits:
		return errors.New("logits become gradients in training: ask for them in a graph without it")
	case !(opt.Distill >= 0 && opt.Distill <= 1):
		return fmt.Errorf("a teacher's weight is %g, must be from 0 to 1", opt.Distill)
	case opt.Distill > 0 && !opt.Train:
		return errors.New("a teacher is for training alone")
	case opt.Exact && cfg.Quant.Activations.Bits != 8:
		return fmt.Errorf("exact mode needs activations of 8 bits, not %d", cfg.Quant.Activations.Bits)
	case cfg.NHeads < 1 || cfg.DModel%cfg.NHeads != 0 || dim%2 != 0 || dim > kernels.MaxHeadDim:
		return fmt.Errorf("d_model %d does not divide into %d heads of an even width up to %d", cfg.DModel, cfg.NHeads, kernels.MaxHeadDim)
	case !(cfg.AttentionScale > 0):
		return fmt.Errorf("attention_scale is %g, must be above 0", cfg.AttentionScale)
	}
	want := cfg.Tensors()
	if len(want) != len(w.Tensors) {
		return fmt.Errorf("the weights have %d tensors, the configuration %d", len(w.Tensors), len(want))
	}
	for i, t := range want {
		if b := t.Quant.Bits; b != 32 && qat.MaxCode(b) == 0 {
			return fmt.Errorf("%s cannot have weights of %d bits, only of 2, 4, 8 or 32", t.Name, b)
		}
		if w.Tensors[i].Name != t.Name || len(w.Data[i]) != t.Len() {
			return fmt.Errorf("tensor %d is %s of %d weights, where the configuration has %s of %d", i, w.Tensors[i].Name, len(w.Data[i]), t.Name, t.Len())
		}
	}
	return nil
}

func build(cfg *configs.Config, w *Weights, opt Options) (g *Graph, err error) {
	n := opt.Batch * opt.Seq
	var b *builder
	defer func() { // Gorgonia panics on graphs that it cannot compile
		if r := recover(); r != nil {
			err = fmt.Errorf("gorgonia: %v", r)
			if b != nil && b.err != nil {
				err = b.err
			}
		}
	}()
	b = &builder{cfg: cfg, opt: opt, graph: gorgonia.NewGraph(), rows: n, params: map[string]*gorgonia.Node{},
		specs: map[string]configs.Tensor{}, tables: map[string]*tableRows{}, quant: map[string]*weight{}, sequences: &sequences{}}
	g = &Graph{opt: opt, vocab: cfg.VocabSize, weights: w, ids: make([]int32, n), targets: make([]int32, n)}
	var params gorgonia.Nodes
	for i, t := range cfg.Tensors() {
		value := tensor.New(tensor.WithShape(t.Shape...), tensor.WithBacking(w.Data[i]))
		node := gorgonia.NewTensor(b.graph, tensor.Float32, len(t.Shape), gorgonia.WithShape(t.Shape...),
			gorgonia.WithName(t.Name), gorgonia.WithValue(value))
		b.params[t.Name], b.specs[t.Name] = node, t
		params = append(params, node)
	}
	b.ids = vector(b.graph, "ids", g.ids)
	if cfg.NgramRows > 0 {
		g.ngram, g.ngramRows = make([]int32, n), uint32(cfg.NgramRows)
		b.ngram = vector(b.graph, "ngram_rows", g.ngram)
	}
	b.target = vector(b.graph, "targets", g.targets)
	b.cosines, b.sines = qat.Rotary(opt.Seq, cfg.DModel/cfg.NHeads, cfg.RopeTheta)

	loss := b.model()
	if b.err != nil {
		return nil, b.err
	}
	if opt.Train {
		if g.grads, err = gorgonia.Grad(loss, params...); err != nil {
			return nil, fmt.Errorf("differentiate: %w", err)
		}
		for _, t := range cfg.Tensors() {
			g.tables = append(g.tables, b.tables[t.Name])
		}
	}
	if err := distinct(b.graph); err != nil {
		return nil, err
	}
	g.vm = gorgonia.NewTapeMachine(b.graph)
	g.traces, g.steps, g.head, g.routers, g.current = b.traces, b.steps, b.head, b.routers, b.sequences
	for _, w := range b.quant {
		if w.quant != nil {
			g.quantised = append(g.quantised, w.quant)
		}
	}
	return g, nil
}

func vector(g *gorgonia.ExprGraph, name string, data []int32) *gorgonia.Node {
	value := tensor.New(tensor.WithShape(len(data)), tensor.WithBacking(data))
	return gorgonia.NewVector(g, tensor.Int32, gorgonia.WithShape(len(data)), gorgonia.WithName(name), gorgonia.WithValue(value))
}

// distinct refuses a graph in which two nodes have the same hash: Gorgonia would merge them. The hash has 32 bits, so a
// chance collision is possible, and must not go unseen.
func distinct(g *gorgonia.ExprGraph) error {
	seen := map[uint32]*gorgonia.Node{}
	for _, n := range g.AllNodes() {
		if other, ok := seen[n.Hashcode()]; ok {
			return fmt.Errorf("nodes %v and %v have the same hash; change the model's name of one operation", other, n)
		}
		seen[n.Hashcode()] = n
	}
	return nil
}

// Run computes the model on ids and targets, Batch*Seq each, sequence after sequence. The loss is the mean of the nats
// over the targets that are not negative; the load-balancing loss of experts is separate, see [Graph.AuxLoss].
// It fails when an id is outside the vocabulary; a result that is not finite is not an error here.
func (g *Graph) Run(ids, targets []int32) (loss float64, err error) {
	g.current.lengths = g.current.lengths[:0]
	for range g.opt.Batch {
		g.current.lengths = append(g.current.lengths, g.opt.Seq)
	}
	return g.run(ids, targets)
}

// RunSequences is Run on other sequences than Batch of length Seq: lengths says how many positions each has, from 1 to
// Seq, and they fill Batch*Seq one after another. What a position gets does not depend on how they are put together
// (except for rounding where simd.Library computes the products).
func (g *Graph) RunSequences(ids, targets []int32, lengths []int) (loss float64, err error) {
	sum := 0
	for i, n := range lengths {
		if n < 1 || n > g.opt.Seq {
			return 0, fmt.Errorf("run graph: sequence %d has %d positions, where 1 to %d are possible", i, n, g.opt.Seq)
		}
		sum += n
	}
	if sum != len(g.ids) {
		return 0, fmt.Errorf("run graph: sequences of %d positions in all, where a batch has %d", sum, len(g.ids))
	}
	g.current.lengths = append(g.current.lengths[:0], lengths...)
	return g.run(ids, targets)
}

func (g *Graph) run(ids, targets []int32) (loss float64, err error) {
	if len(ids) != len(g.ids) || len(targets) != len(g.targets) {
		return 0, fmt.Errorf("run graph: %d ids and %d targets, where a batch has %d", len(ids), len(targets), len(g.ids))
	}
	for i := range ids {
		if ids[i] < 0 || int(ids[i]) >= g.vocab {
			return 0, fmt.Errorf("run graph: id %d at position %d is outside the vocabulary of %d", ids[i], i, g.vocab)
		}
		if int(targets[i]) >= g.vocab {
			return 0, fmt.Errorf("run graph: target %d at position %d is outside the vocabulary of %d", targets[i], i, g.vocab)
		}
	}
	if g.opt.Distill > 0 && g.head.teacher == nil {
		return 0, errors.New("run graph: no teacher's logits were given for this batch")
	}
	copy(g.ids, ids)
	copy(g.targets, targets)
	g.hashPairs()
	defer func() { g.head.teacher = nil }()
	if err := g.vm.RunAll(); err != nil {
		g.vm.Reset()
		return 0, fmt.Errorf("run graph: %w", err)
	}
	g.vm.Reset()
	return g.head.loss, nil
}

// Teach gives the logits of a teacher, Batch*Seq*V, on the batch that the next run gets. With the weight a of
// Options.Distill, the gradients of that run are those of the cross-entropy against (1-a) times the targets plus a times the
// teacher's distributions (Hinton, Vinyals and Dean 2015, at temperature 1); positions without a target do not count, as ever.
// The loss and the nats stay those of the targets alone. The logits are overwritten.
func (g *Graph) Teach(logits []float32) error {
	switch {
	case g.opt.Distill == 0:
		return errors.New("teach graph: it was built without a teacher")
	case len(logits) != len(g.ids)*g.vocab:
		return fmt.Errorf("teach graph: %d logits, where a batch has %d", len(logits), len(g.ids)*g.vocab)
	}
	g.head.teacher = logits
	return nil
}

// hashPairs finds the row of the bigram table for each position: a sequence's first one has no token before it.
func (g *Graph) hashPairs() {
	if g.ngramRows == 0 {
		return
	}
	at := 0
	for _, n := range g.current.lengths {
		previous := uint32(g.vocab)
		for range n {
			id := uint32(g.ids[at])
			g.ngram[at] = int32(qat.NgramRow(previous, id, g.ngramRows))
			previous = id
			at++
		}
	}
}

// HoldWeights says whether the weights will be those of the last run, so that runs need not quantise them again. Without
// it every run looks at them anew.
func (g *Graph) HoldWeights(hold bool) {
	for _, q := range g.quantised {
		q.Hold(hold)
	}
}

// AuxLoss is the load-balancing loss of the experts in the last run, summed over the layers, before its weight
// router_aux; 0 without experts. In training its gradient is part of the gradients.
func (g *Graph) AuxLoss() float64 {
	sum := 0.0
	for _, r := range g.routers {
		sum += r.aux
	}
	return sum
}

// Choices are the experts that a layer sent each position of the last run to; nil without experts. They are valid until
// the next run.
func (g *Graph) Choices(layer int) []int32 {
	if layer < 0 || layer >= len(g.routers) {
		return nil
	}
	return g.routers[layer].choice
}

// Gradients are those of the last run, in the order of the weights' tensors; nil without Train. They are valid until
// the next run.
func (g *Graph) Gradients() [][]float32 {
	if g.slices == nil {
		for _, n := range g.grads {
			g.slices = append(g.slices, floats(n.Value()))
		}
	}
	return g.slices
}

// GradientRows are, for each of [Graph.Gradients], the rows that may not be zero, ascending; nil when all may. They are
// valid until the next run.
func (g *Graph) GradientRows() [][]int32 {
	g.rows = g.rows[:0]
	for _, t := range g.tables {
		if t == nil {
			g.rows = append(g.rows, nil)
		} else {
			g.rows = append(g.rows, t.list)
		}
	}
	return g.rows
}

// NLL are the nats of each target in the last run, 0 where the target was negative.
func (g *Graph) NLL() []float32 { return g.head.nll }

// Logits are those of the last run, Batch*Seq*V; nil unless asked for in the options.
func (g *Graph) Logits() []float32 {
	if !g.opt.Logits {
		return nil
	}
	return g.head.logits
}

// FirstNonFinite names the first tensor that held a NaN or an infinity in the last run: parameters, then the results of
// the operations in their order, then gradients (their names end in a d and the operand). It is empty if there is none.
func (g *Graph) FirstNonFinite() string {
	for i, t := range g.weights.Tensors {
		if !kernels.Finite(g.weights.Data[i]) {
			return t.Name
		}
	}
	for _, t := range g.traces {
		if !kernels.Finite(t.data) {
			return t.name
		}
	}
	if !kernels.Finite(g.head.nll) {
		return "loss"
	}
	return ""
}

// Close releases the machine. The graph must not be used afterwards.
func (g *Graph) Close() error {
	if g.vm == nil {
		return nil
	}
	err := g.vm.Close()
	g.vm, g.grads, g.slices, g.tables, g.traces, g.steps = nil, nil, nil, nil, nil, nil
	return err
}
