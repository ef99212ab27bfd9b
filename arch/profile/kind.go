package profile

// Kind is a kind of work in training. A row of a profile is a kind, not a node of the graph.
type Kind int

// The kinds of work.
const (
	Rest    Kind = iota // what no other kind explains: the graph's machine, drawing batches, starting workers
	Waiting             // for the turn to add a gradient, for the last micro-batch, for the optimiser

	Embedding           // rows of the token table, quantised
	EmbeddingGradient   // added to the rows of both tables
	QuantiseWeights     //
	QuantiseActivations // that enter products; those of attention are part of attention
	LinearForward       // products with weights; the head's are apart
	LinearDx            // gradients of what entered them
	LinearDw            // gradients of the weights
	Attention           // norms, rotation and quantisation of queries, keys and values included
	AttentionGradient   //
	Norm                //
	NormGradient        // the gradient that joins from the residual stream included
	Gate                // of the feed-forward
	GateGradient        //
	Router              // products of the router of experts
	ExpertSorting       // choice of experts, and rows moved to and from them
	PLEMix              // per-layer embeddings: rows of the table, quantised and mixed with the projection
	PLEMixGradient      //
	PLEGate             // per-layer embeddings: gelu gate of a layer
	PLEGateGradient     //
	Residual            //
	HeadProduct         // logits
	HeadSoftmax         // cross-entropy, and its gradient in place
	HeadGradient        // products for both gradients of the head
	GradientSum         // over the micro-batches
	Optimiser           // norm of the gradient and update of the weights

	kinds
)

var kindNames = [kinds]string{
	Rest: "graph machine and rest", Waiting: "waiting for other workers",
	Embedding: "embedding", EmbeddingGradient: "embedding gradient",
	QuantiseWeights: "quantise weights", QuantiseActivations: "quantise activations",
	LinearForward: "linear forward", LinearDx: "linear dx", LinearDw: "linear dw",
	Attention: "attention", AttentionGradient: "attention gradient",
	Norm: "norm", NormGradient: "norm gradient", Gate: "gate", GateGradient: "gate gradient",
	Router: "router", ExpertSorting: "expert sorting",
	PLEMix: "ple mix", PLEMixGradient: "ple mix gradient", PLEGate: "ple gate", PLEGateGradient: "ple gate gradient",
	Residual: "residual", HeadProduct: "head product", HeadSoftmax: "head softmax", HeadGradient: "head gradient",
	GradientSum: "gradient sum", Optimiser: "optimiser",
}

// String is the name in tables.
func (k Kind) String() string { return kindNames[k] }
