package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/chiplm/chiplm/arch"
	"github.com/chiplm/chiplm/arch/profile"
)

// Sequences gives what there is to train on, in pieces of the context's length that are numbered: the n-th is always the
// same. It serves several goroutines at once. Package shards offers it.
type Sequences interface {
	// Batch puts the pieces from the n-th on into ids and targets, as many as fill them, and appends the lengths of the
	// sequences that these are: attention stays within a sequence.
	Batch(n int64, ids, targets []int32, lengths []int) []int
}

// Team runs the micro-batches of a step on its workers. Each worker owns a graph and runs whole micro-batches;
// gradients are added up in the order of the micro-batches. So the sum is the same, to the bit, however many workers
// there are.
type Team struct {
	workers   []*worker
	sequences Sequences
	batch     int // sequences of a micro-batch
	context   int // tokens of a sequence
	micro     int // micro-batches of a step

	sum    *gradientSum
	losses []float64 // of each micro-batch of the step under way
	aux    []float64 // load-balancing losses, likewise
}

// worker is one goroutine's share of a team.
type worker struct {
	graph        Graph
	teacher      Graph // or nil
	ids, targets []int32
	lengths      []int
	profile      *profile.Profile // or nil
}

// errNotFinite is wrapped by every error that says a loss or a gradient is NaN or infinite.
var errNotFinite = errors.New("not finite")

// SpareProcessors lets Go's scheduler have more processors than there are workers, unless the environment says how many.
// A worker is in C nearly all the time. When none of the scheduler's processors is idle, it takes those of the workers
// away after 20 microseconds in C, looks for other work, and wakes up again and again; that costs a few percent.
func SpareProcessors(workers int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 3*workers))
	}
}

// newTeam makes a team that has no graphs yet.
func newTeam(workers int, sequences Sequences, batch, context, micro int, params []*Parameter) *Team {
	SpareProcessors(workers)
	batchScheduling()
	t := &Team{sequences: sequences, batch: batch, context: context, micro: micro, sum: newGradientSum(params),
		losses: make([]float64, micro), aux: make([]float64, micro)}
	for range workers {
		n := batch * context
		t.workers = append(t.workers, &worker{ids: make([]int32, n), targets: make([]int32, n)})
	}
	return t
}

// build gives every worker a new graph and closes its old one. Where a teacher is not nil, it gets one of that too.
func (t *Team) build(ctx context.Context, builder, teacher Builder, opt arch.Options) error {
	t.close()
	errs := make([]error, len(t.workers))
	var wg sync.WaitGroup
	for i, w := range t.workers {
		own := opt
		own.Profile = w.profile
		wg.Go(func() {
			if w.graph, errs[i] = buildGraph(ctx, builder, own); errs[i] == nil && teacher != nil {
				w.teacher, errs[i] = buildGraph(ctx, teacher, arch.Options{Batch: opt.Batch, Seq: opt.Seq, Logits: true, Profile: w.profile})
			}
			if w.teacher != nil {
				w.teacher.HoldWeights(true) // they never change
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.close()
		return fmt.Errorf("build the training graph: %w", err)
	}
	return nil
}

// close gives the graphs up.
func (t *Team) close() {
	for _, w := range t.workers {
		for _, g := range []*Graph{&w.graph, &w.teacher} {
			if *g != nil {
				_ = (*g).Close() // it only gives memory back
				*g = nil
			}
		}
	}
}

// step leaves in the parameters' gradients the sum over the micro-batches of a step, the first of which begins at
// sequence number first, and returns the mean loss and the mean load-balancing loss of experts. When ctx ends it gives
// the step up between two micro-batches and returns ctx's error; the gradients are then worth nothing.
func (t *Team) step(ctx context.Context, first int64) (loss, aux float64, err error) {
	t.sum.start()
	var next atomic.Int64
	if len(t.workers) == 1 {
		t.work(ctx, t.workers[0], first, &next)
	} else {
		var wg sync.WaitGroup
		for _, w := range t.workers {
			wg.Go(func() { t.work(ctx, w, first, &next) })
		}
		wg.Wait()
		t.idle() // until the last was done
	}
	if t.sum.err != nil {
		return 0, 0, t.sum.err
	}
	t.sum.finish()
	for i := range t.losses {
		loss += t.losses[i]
		aux += t.aux[i]
	}
	return loss / float64(t.micro), aux / float64(t.micro), nil
}

// idle charges the time of several workers up to here to waiting.
func (t *Team) idle() {
	if len(t.workers) == 1 {
		return // there is nobody to wait for
	}
	for _, w := range t.workers {
		w.profile.Lap(profile.Cost{Kind: profile.Waiting})
	}
}

// work runs micro-batches until none is left. A worker takes the next one, so that no slow worker holds the others up;
// then it waits for its turn to add the gradient.
func (t *Team) work(ctx context.Context, w *worker, first int64, next *atomic.Int64) {
	w.graph.HoldWeights(false)
	for {
		i := int(next.Add(1) - 1)
		if i >= t.micro {
			return
		}
		err := ctx.Err()
		if err == nil {
			err = t.runOne(w, first, i)
		}
		if !t.sum.take(i, w.graph, err, w.profile) {
			return
		}
		w.graph.HoldWeights(true) // until the step ends
	}
}

// learn has the worker's teacher, if there is one, say what it thinks of the batch at hand.
func (w *worker) learn() error {
	if w.teacher == nil {
		return nil
	}
	if _, err := w.teacher.RunSequences(w.ids, w.targets, w.lengths); err != nil {
		return fmt.Errorf("the teacher: %w", err)
	}
	return w.graph.Teach(w.teacher.Logits())
}

func (t *Team) runOne(w *worker, first int64, i int) error {
	w.lengths = t.sequences.Batch(first+int64(i*t.batch), w.ids, w.targets, w.lengths[:0])
	if err := w.learn(); err != nil {
		return fmt.Errorf("micro-batch %d: %w", i, err)
	}
	loss, err := w.graph.RunSequences(w.ids, w.targets, w.lengths)
	if err != nil {
		return fmt.Errorf("micro-batch %d: %w", i, err)
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		name := w.graph.FirstNonFinite()
		if name == "" {
			name = "loss"
		}
		return fmt.Errorf("the loss of micro-batch %d is %v; the first tensor that is %w: %s", i, loss, errNotFinite, name)
	}
	t.losses[i], t.aux[i] = loss, w.graph.AuxLoss()
	return nil
}
