package arch

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/chiplm/chiplm/arch/profile"
	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/qat"
)

// goldenCase is one operation of testdata/operations.json: inputs, output y, the gradient dy that flows in, and the
// gradient of every input ("d" and its name).
type goldenCase struct {
	Operation, Mode string
	About           struct {
		Rows, N, Outs, Cols, Batch, Positions, Heads, D, F, P, Vocab, Experts, Bits, Group int
		Eps, Theta, Aux                                                                    float64
		QKNorm                                                                             bool `json:"qk_norm"`
		Activation, Scale                                                                  string
		IDs, Targets                                                                       []int32
	}
	Tensors map[string]struct {
		Shape []int
		Data  goldenFloats
	}
}

// goldenOperation is a graph of one operation between its inputs and the sum of y*dy.
type goldenOperation struct {
	*builder
	t      *testing.T
	c      goldenCase
	inputs map[string]*gorgonia.Node
}

// param makes an input of the case a parameter of the model, by its name in the tensor table.
func (o *goldenOperation) param(input, name string) *gorgonia.Node {
	in := o.c.Tensors[input]
	value := tensor.New(tensor.WithShape(in.Shape...), tensor.WithBacking([]float32(in.Data)))
	node := gorgonia.NewTensor(o.graph, tensor.Float32, len(in.Shape), gorgonia.WithShape(in.Shape...),
		gorgonia.WithName(name), gorgonia.WithValue(value))
	spec := configs.WeightQuant{Bits: 32}
	if a := o.c.About; a.Bits != 0 {
		spec = configs.WeightQuant{Bits: a.Bits, Group: a.Group, Scale: configs.ScaleType(a.Scale)}
	}
	o.specs[name] = configs.Tensor{Name: name, Shape: in.Shape, Quant: spec}
	o.params[name], o.inputs[input] = node, node
	return node
}

// matrix is a parameter that products read.
func (o *goldenOperation) matrix(input, name string) *weight {
	o.param(input, name)
	return o.weight(name)
}

// weighted is the sum of y*dy, a scalar whose gradient by y is dy.
func (o *goldenOperation) weighted(y *gorgonia.Node) *gorgonia.Node {
	if o.err != nil {
		o.t.Fatal(o.err)
	}
	dy := o.c.Tensors["dy"].Data
	if y.IsScalar() { // the head: its loss is the output
		w := gorgonia.NewScalar(o.graph, tensor.Float32, gorgonia.WithName("dy"), gorgonia.WithValue(dy[0]))
		return gorgonia.Must(gorgonia.Mul(y, w))
	}
	shape := y.Shape().Clone()
	grad := func(_, _ *gorgonia.Node) gorgonia.Nodes {
		return gorgonia.Nodes{o.node("golden.dy", profile.Cost{}, shape, func(_ []gorgonia.Value, out []float32) { copy(out, dy) }, nil, fixed(y))}
	}
	do := func(in []gorgonia.Value) (gorgonia.Value, error) {
		sum := float32(0)
		for i, v := range floats(in[0]) {
			sum += v * dy[i]
		}
		return gorgonia.NewF32(sum), nil
	}
	return o.apply(&op{name: "golden.sum", types: []hm.Type{tensor.Float32}, shape: tensor.ScalarShape(), do: do}, grad, wrt(y))
}

// output builds the case's operation.
func (o *goldenOperation) output() *gorgonia.Node {
	layer := func(part string) string { return configs.LayerTensor(0, part) }
	switch o.c.Operation {
	case "rmsnorm":
		return o.norm("norm", o.param("x", "x"), o.param("gain", "gain"), normForks{})
	case "linear":
		return o.linear("linear", o.param("x", "x"), o.matrix("w", "w"), nil)
	case "attention":
		return o.attention("attention", o.param("qkv", "qkv"))
	case "feed_forward":
		a := o.gatedUp("gated_up", 0, o.param("x", "x"), o.matrix("gate", layer(configs.Gate)), o.matrix("up", layer(configs.Up)))
		return o.linear("down", a, o.matrix("down", layer(configs.Down)), nil)
	case "ple_mix":
		g := o.linear("ple_gate", o.param("x", "x"), o.matrix("gate", layer(configs.PLEGate)), nil)
		m := o.perLayerGate("ple_gated", 0, g, o.param("e", "e"))
		y := o.linear("ple_output", m, o.matrix("output", layer(configs.PLEOutput)), nil)
		return o.norm("ple_norm", y, o.param("gain", "gain"), normForks{})
	case "embedding":
		o.param("table", configs.TokenEmbedding)
		return o.embedding()
	case "experts":
		h := o.param("x", "x")
		quant := o.c.About.Bits
		o.c.About.Bits = 0 // the router is never quantised
		o.param("router", layer(configs.Router))
		o.c.About.Bits = quant
		for input, part := range map[string]string{"gate": configs.Gate, "up": configs.Up, "down": configs.Down} {
			o.param(input, layer(part))
		}
		return o.experts("experts", 0, h)
	case "head":
		o.param("w", configs.Head)
		return o.headLoss(o.param("x", "x"))
	}
	o.t.Fatalf("the fixture has an operation that this test does not know: %s", o.c.Operation)
	return nil
}

func (o *goldenOperation) run() {
	y := o.output()
	loss := o.weighted(y)
	var names []string
	var inputs gorgonia.Nodes
	for name, node := range o.inputs {
		names, inputs = append(names, name), append(inputs, node)
	}
	grads, err := gorgonia.Grad(loss, inputs...)
	if err != nil {
		o.t.Fatal(err)
	}
	vm := gorgonia.NewTapeMachine(o.graph)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		o.t.Fatal(err)
	}
	check := func(name string, got []float32) {
		o.t.Helper()
		if d := goldenDifference(got, o.c.Tensors[name].Data); !(d <= goldenTolerance) {
			o.t.Errorf("%s: relative difference %.1e", name, d)
		}
	}
	if y.IsScalar() {
		check("y", []float32{y.Value().Data().(float32)})
	} else {
		got := floats(y.Value())
		if len(o.routers) > 0 { // the fixture's last value is the load-balancing loss
			got = append(slices.Clone(got), float32(o.c.About.Aux*o.routers[0].aux))
		}
		check("y", got)
	}
	for i, name := range names {
		check("d"+name, floats(grads[i].Value()))
	}
}

// TestGoldenOperations compares each operation and its gradients with PyTorch's, at odd shapes.
func TestGoldenOperations(t *testing.T) {
	var file struct{ Cases []goldenCase }
	readGolden(t, "operations.json", &file)
	if len(file.Cases) == 0 {
		t.Fatal("no cases in the fixture")
	}
	for i, c := range file.Cases {
		t.Run(fmt.Sprintf("%02d_%s_%s", i, c.Operation, c.Mode), func(t *testing.T) {
			a := c.About
			rows := max(a.Rows, a.Batch*a.Positions, len(a.IDs))
			cfg := &configs.Config{Name: c.Operation, VocabSize: a.Vocab, DModel: max(a.D, 1) * max(a.Heads, 1), NLayers: 1,
				NHeads: a.Heads, DFF: a.F, PLEDim: a.P, Activation: configs.Activation(a.Activation), Experts: a.Experts,
				QKNorm: a.QKNorm, AttentionScale: 1, RopeTheta: a.Theta, NormEps: a.Eps}
			cfg.Quant.Activations.Bits = 8
			cfg.Train.RouterAux = a.Aux
			b := &builder{cfg: cfg, graph: gorgonia.NewGraph(), rows: rows, params: map[string]*gorgonia.Node{},
				specs: map[string]configs.Tensor{}, tables: map[string]*tableRows{}, quant: map[string]*weight{},
				opt: Options{Batch: max(a.Batch, 1), Seq: max(a.Positions, rows/max(a.Batch, 1)), Train: true, Float: c.Mode == "float"}}
			b.sequences = &sequences{slices.Repeat([]int{b.opt.Seq}, b.opt.Batch)}
			b.ids, b.target = vector(b.graph, "ids", a.IDs), vector(b.graph, "targets", a.Targets)
			b.cosines, b.sines = qat.Rotary(b.opt.Seq, max(a.D, 2), max(a.Theta, 1))
			o := &goldenOperation{builder: b, t: t, c: c, inputs: map[string]*gorgonia.Node{}}
			o.run()
		})
	}
}
