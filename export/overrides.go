package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/configs"
)

// Overrides change the quantisation that a checkpoint was trained with. Each entry is a number, for all classes of
// tensors, or CLASS=NUMBER for one, such as ple_table=2; later entries win.
type Overrides struct {
	Bits  []string
	Group []string
}

// quantClasses are the classes that can be quantised.
var quantClasses = []configs.TensorClass{configs.ClassTrunk, configs.ClassEmbedding, configs.ClassHead, configs.ClassPLETable, configs.ClassNgramTable}

// apply returns the configuration with the overrides; c is not changed. Quantised weights ask for 8-bit activations, so
// a model of float activations gets them.
func (o Overrides) apply(c *configs.Config) (*configs.Config, error) {
	out := *c
	out.Quant.Classes = map[configs.TensorClass]configs.ClassRule{}
	for k, v := range c.Quant.Classes {
		out.Quant.Classes[k] = v
	}
	for _, f := range []struct {
		flag    string
		values  []string
		allowed []int
		all     func(int)
		one     func(*configs.ClassRule, *int)
	}{
		{"--bits", o.Bits, []int{2, 4, 8}, func(n int) { out.Quant.Weights.Bits = n }, func(r *configs.ClassRule, n *int) { r.Bits = n }},
		{"--group", o.Group, []int{0, 32, 64, 128}, func(n int) { out.Quant.Weights.Group = n }, func(r *configs.ClassRule, n *int) { r.Group = n }},
	} {
		for _, s := range f.values {
			class, number, one := strings.Cut(s, "=")
			if !one {
				class, number = "", s
			}
			n, err := strconv.Atoi(number)
			if err != nil || !slices.Contains(f.allowed, n) {
				return nil, fmt.Errorf("%s %s: must be one of %v, alone or as CLASS=NUMBER", f.flag, s, f.allowed)
			}
			if !one {
				f.all(n)
				for k, r := range out.Quant.Classes {
					f.one(&r, nil)
					out.Quant.Classes[k] = r
				}
				continue
			}
			k := configs.TensorClass(class)
			if !slices.Contains(quantClasses, k) {
				return nil, fmt.Errorf("%s %s: no class %q that is quantised; there are %v", f.flag, s, class, quantClasses)
			}
			r := out.Quant.Classes[k]
			f.one(&r, &n)
			out.Quant.Classes[k] = r
		}
	}
	for k, r := range out.Quant.Classes {
		if r == (configs.ClassRule{}) {
			delete(out.Quant.Classes, k)
		}
	}
	if len(o.Bits) > 0 {
		out.Quant.Activations.Bits = 8
	}
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return &out, nil
}

// trainedOtherwise says whether the weights were trained with another quantisation than the image has, and in what.
func trainedOtherwise(ck *checkpoints.Checkpoint, c *configs.Config) (bool, []string) {
	var notes []string
	was, is := ck.Config.Tensors(), c.Tensors()
	seen := map[configs.TensorClass]bool{}
	for i := range is {
		if was[i].Quant != is[i].Quant && !seen[is[i].Class] {
			seen[is[i].Class] = true
			notes = append(notes, fmt.Sprintf("%s: trained with %s, quantised after training to %s", is[i].Class, spec(was[i].Quant), spec(is[i].Quant)))
		}
	}
	if a, b := ck.Config.Quant.Activations.Bits, c.Quant.Activations.Bits; a != b {
		notes = append(notes, fmt.Sprintf("activations: trained with %d bits, quantised after training to %d", a, b))
	}
	if start := ck.Config.FloatSteps(); ck.State.Step < start || ck.State.Step == start && start > 0 {
		notes = append(notes, fmt.Sprintf("the checkpoint is of step %d, quantisation starts after step %d: quantised after training", ck.State.Step, start))
	}
	return len(notes) > 0, notes
}

func spec(q configs.WeightQuant) string {
	switch {
	case q.Bits == 32:
		return "float32"
	case q.Group == 0:
		return fmt.Sprintf("%d bits, a scale a row", q.Bits)
	}
	return fmt.Sprintf("%d bits in groups of %d", q.Bits, q.Group)
}
