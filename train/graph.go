package train

import (
	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/configs"
)

// Graph computes the loss of a micro-batch and its gradients. One worker owns it; the weights it reads are shared.
// Package arch builds the real one.
type Graph interface {
	// Run is RunSequences on Batch sequences of Seq positions.
	Run(ids, targets []int32) (float64, error)
	// RunSequences takes Batch*Seq ids and targets (a negative target is not scored), which are sequences of the given
	// lengths, up to Seq, one after another, and returns the mean loss in nats.
	RunSequences(ids, targets []int32, lengths []int) (float64, error)
	// Teach gives the logits of a teacher on the batch of the next Run, to a graph built to have one; they are overwritten.
	Teach(logits []float32) error
	// HoldWeights says whether the weights will be those of the last Run, which spares quantising them again.
	HoldWeights(hold bool)
	// AuxLoss is the load-balancing loss of the last Run, without its weight; 0 without experts.
	AuxLoss() float64
	// Gradients are those of the last Run, in the order of the weights, valid until the next Run.
	Gradients() [][]float32
	// GradientRows are, for each of Gradients, the rows that may not be zero, ascending; nil when all may. They are valid
	// until the next Run.
	GradientRows() [][]int32
	// NLL is the loss in nats of each position of the last Run.
	NLL() []float32
	// Logits are those of the last Run, position by position, of a graph built to keep them.
	Logits() []float32
	// FirstNonFinite names the first tensor, activations included, that holds a NaN or an infinity; "" if none does.
	FirstNonFinite() string
	Close() error
}

// Builder makes a graph over the shared weights of a run. It is called by several goroutines at once.
type Builder func(arch.Options) (Graph, error)

// ArchBuilder builds the graphs of package arch over weights.
func ArchBuilder(cfg *configs.Config, w *arch.Weights) Builder {
	return func(opt arch.Options) (Graph, error) {
		g, err := arch.Build(cfg, w, opt)
		if err != nil {
			return nil, err // not g: a nil *arch.Graph would be a Graph that is not nil
		}
		return g, nil
	}
}
