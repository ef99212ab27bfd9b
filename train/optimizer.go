package train

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"

	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat/pages"
)

// The optimisers that train.optimizer names.
const (
	OptimizerAdamW = "adamw" // all parameters by AdamW
	OptimizerMuon  = "muon"  // the matrices of the layers by Muon, tables and vectors by AdamW
)

// Optimizer updates all parameters of a model, each by the solver that train.optimizer gives it.
type Optimizer struct {
	params      []*Parameter
	adamw       *AdamW
	muon        *Muon                // nil without one
	muonPeak    float64              // its learning rate where the schedule is at its peak
	byAdamW     []int                // the parameters of each, as numbers of params
	byMuon      []int                //
	adamwValues []gorgonia.ValueGrad // the same, as solvers want them
	muonValues  []gorgonia.ValueGrad
}

// newOptimizer makes the optimiser of a configuration, for parameters in the order of its tensors.
func newOptimizer(cfg *configs.Config, params []*Parameter, threads int) (*Optimizer, error) {
	t := cfg.Train
	o := &Optimizer{params: params, adamw: &AdamW{Beta1: t.Beta1, Beta2: t.Beta2, Eps: t.Eps, WeightDecay: t.WeightDecay, Threads: threads}}
	switch t.Optimizer {
	case OptimizerAdamW:
	case OptimizerMuon:
		o.muon = &Muon{Momentum: t.Muon.Momentum, Steps: t.Muon.Steps, WeightDecay: t.Muon.WeightDecay,
			NormaliseRows: t.Muon.NormaliseRows, Beta2: t.Beta2, Threads: threads}
		o.muonPeak = t.Muon.LR
	default:
		return nil, fmt.Errorf("train.optimizer: %q is unknown: use %s or %s", t.Optimizer, OptimizerAdamW, OptimizerMuon)
	}
	for i, tensor := range cfg.Tensors() {
		if o.muon != nil && tensor.Class == configs.ClassTrunk {
			o.byMuon, o.muonValues = append(o.byMuon, i), append(o.muonValues, params[i])
			o.muon.Parts = append(o.muon.Parts, matricesOf(cfg, tensor.Name))
			continue
		}
		o.byAdamW, o.adamwValues = append(o.byAdamW, i), append(o.adamwValues, params[i])
		o.adamw.Rates = append(o.adamw.Rates, t.LRScale.Of(tensor.Class))
	}
	return o, o.zero()
}

// matricesOf is how many matrices a tensor of the layers holds, one after the other: queries, keys and values are three,
// every expert has its own, and so has every layer's part of the per-layer embedding's projection.
func matricesOf(cfg *configs.Config, name string) int {
	_, part := configs.SplitTensor(name)
	switch part {
	case configs.QKV:
		return 3
	case configs.Gate, configs.Up, configs.Down:
		return max(cfg.Experts, 1)
	case configs.PLEProjection:
		return cfg.NLayers
	}
	return 1
}

// step updates the weights. share is where the schedule stands, as a share of its peak; lr the rate of AdamW there;
// gradients are multiplied by scale first.
func (o *Optimizer) step(lr, share, scale float64) error {
	o.adamw.LR, o.adamw.GradScale = lr, scale
	if err := o.adamw.Step(o.adamwValues); err != nil || o.muon == nil {
		return err
	}
	o.muon.LR, o.muon.GradScale = o.muonPeak*share, scale
	return o.muon.Step(o.muonValues)
}

// profile has the solvers charge what they do; there is one profile a thread.
func (o *Optimizer) profile(all []*profile.Profile) {
	o.adamw.profiles = all
	if o.muon != nil {
		o.muon.profiles = all
	}
}

// moment is a part of the optimiser's state: "m.layers.0.qkv".
type moment struct {
	name string
	data []float32
}

// The kinds of moments.
const (
	momentMean    = "m" // of gradients
	momentSquares = "v" // of squared gradients
	momentRows    = "r" // of the squares of a row, one value a row
)

// moments is the state: the solvers' own slices.
func (o *Optimizer) moments() []moment {
	var all []moment
	add := func(kind string, numbers []int, data [][]float32) {
		for i, n := range numbers {
			all = append(all, moment{kind + "." + o.params[n].name, data[i]})
		}
	}
	m, v, _ := o.adamw.Moments()
	add(momentMean, o.byAdamW, m)
	add(momentSquares, o.byAdamW, v)
	if o.muon != nil {
		m, rows, _ := o.muon.Moments()
		add(momentMean, o.byMuon, m)
		if rows != nil {
			add(momentRows, o.byMuon, rows)
		}
	}
	return all
}

// zero makes the state before the first step.
func (o *Optimizer) zero() error {
	state := func(numbers []int) (list [][]float32) {
		for _, n := range numbers {
			list = append(list, pages.Make[float32](len(o.params[n].weights)))
		}
		return list
	}
	if err := o.adamw.SetMoments(state(o.byAdamW), state(o.byAdamW), 0); err != nil || o.muon == nil {
		return err
	}
	var rows [][]float32
	if o.muon.NormaliseRows {
		for _, n := range o.byMuon {
			rows = append(rows, make([]float32, len(o.params[n].touched)))
		}
	}
	return o.muon.SetMoments(state(o.byMuon), rows, 0)
}

// restore takes over the state of an optimiser that has taken so many steps. It fails when a part is missing, of another
// size, or belongs to another optimiser.
func (o *Optimizer) restore(state map[string][]float32, steps int) error {
	fresh := o.moments()
	if len(fresh) != len(state) {
		return fmt.Errorf("the optimiser's state has %d parts, where %d are needed: it is that of another optimiser", len(state), len(fresh))
	}
	byKind := map[string]map[string][]float32{}
	for _, want := range fresh {
		data, ok := state[want.name]
		if !ok || len(data) != len(want.data) {
			return fmt.Errorf("the optimiser's state %s is missing or of another size", want.name)
		}
		kind, tensor, _ := strings.Cut(want.name, ".")
		if byKind[kind] == nil {
			byKind[kind] = map[string][]float32{}
		}
		byKind[kind][tensor] = data
	}
	pick := func(kind string, numbers []int) (list [][]float32) {
		for _, n := range numbers {
			list = append(list, byKind[kind][o.params[n].name])
		}
		return list
	}
	if err := o.adamw.SetMoments(pick(momentMean, o.byAdamW), pick(momentSquares, o.byAdamW), steps); err != nil || o.muon == nil {
		return err
	}
	var rows [][]float32
	if o.muon.NormaliseRows {
		rows = pick(momentRows, o.byMuon)
	}
	return o.muon.SetMoments(pick(momentMean, o.byMuon), rows, steps)
}
