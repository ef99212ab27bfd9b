package train

import (
	"fmt"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
)

// predictMemory is about how many bytes training takes. The weights, the sum of the gradients and two moments are held
// once, and weights and moments once more while a checkpoint of them is written; each worker has a graph for training and one for validation. The program itself and what it reads take some
// more. It is a float, since the sizes a model file may give can go beyond 64 bits.
func predictMemory(cfg *configs.Config, workers int) float64 {
	const program = 60 << 20
	return program + 4*(7*float64(cfg.Parameters())+float64(workers)*(graphFloats(cfg, true)+graphFloats(cfg, false)))
}

// graphFloats is about how many floats a graph of a micro-batch holds. Per position of the micro-batch these are the
// results of the operations, their codes and, in training, their gradients; per weight the code and, in training, the
// quantised value and the gradient.
func graphFloats(cfg *configs.Config, train bool) float64 {
	const logitRows = 256 // whose logits exist at a time
	d, f, p, l := float64(cfg.DModel), float64(cfg.DFF), float64(cfg.PLEDim), float64(cfg.NLayers)
	h, t, params := float64(cfg.NHeads), float64(cfg.ContextLength), float64(cfg.Parameters())
	layer, outside, perWeight := 12*d+3.5*f, 2*d, 0.3
	if train {
		perWeight = 2
		layer, outside = 24*d+7*f+5*h, 4*d
	}
	switch {
	case p > 0 && train:
		layer += 6*d + 5*p
		outside += 3*l*p + 2*d
	case p > 0:
		layer += 3*d + 2.5*p
		outside += 2*l*p + d
	}
	switch {
	case cfg.Experts > 1 && train:
		layer += 4*d + 4*f + 3*float64(cfg.Experts)
	case cfg.Experts > 1:
		layer += 3*d + 3*float64(cfg.Experts)
	}
	table := float64(cfg.NgramRows) * d // of which a graph holds no code, only the gradient
	weights := perWeight * (params - table)
	if train {
		weights += table
	}
	return weights + float64(cfg.Train.MicroBatch)*t*(l*layer+outside) + logitRows*float64(cfg.VocabSize)
}

// Memory is about how many bytes training takes with that many workers, and with a teacher unless it is nil.
func Memory(cfg, teacher *configs.Config, workers int) float64 {
	if teacher == nil {
		return predictMemory(cfg, workers)
	}
	return predictMemory(cfg, workers) + teacherMemory(cfg, teacher, workers)
}

// FreeMemory is how many bytes this process may still take; 0: that is not known.
func FreeMemory() float64 { return freeMemory().bytes }

// CheckMemory refuses a training that needs more memory than this process may still take.
func CheckMemory(cfg *configs.Config, workers int) error {
	return checkMemory(cfg, workers, freeMemory())
}

// teacherMemory is about how many bytes a teacher takes beside a run of cfg: its weights, and for each worker a graph that
// keeps all logits of a micro-batch.
func teacherMemory(cfg, teacher *configs.Config, workers int) float64 {
	same := *teacher
	same.ContextLength, same.Train.MicroBatch = cfg.ContextLength, cfg.Train.MicroBatch
	logits := float64(cfg.Train.MicroBatch) * float64(cfg.ContextLength) * float64(cfg.VocabSize)
	return 4 * (float64(teacher.Parameters()) + float64(workers)*(graphFloats(&same, false)+logits))
}

// checkTeacher refuses a run that does not fit with its teacher. Without one, checkMemory has looked already.
func checkTeacher(cfg *configs.Config, t *teacher, workers int, free memory) error {
	if t == nil {
		return nil
	}
	need := Memory(cfg, t.cfg, workers)
	if free.bytes == 0 || need <= free.bytes {
		return nil
	}
	return fmt.Errorf("training %s with the teacher %s, train.micro_batch=%d and %d workers needs about %s MB of memory, but %s MB are left (%s): "+
		"choose a smaller teacher, a smaller train.micro_batch or --workers", cfg.Name, t.path, cfg.Train.MicroBatch, workers,
		megabytes(need), megabytes(free.bytes), free.source)
}

func checkMemory(cfg *configs.Config, workers int, free memory) error {
	need := predictMemory(cfg, workers)
	if free.bytes == 0 || need <= free.bytes {
		return nil
	}
	least := *cfg
	least.Train.MicroBatch = 1
	return fmt.Errorf("training %s with train.micro_batch=%d, context_length=%d and %d workers needs about %s MB of memory, "+
		"but %s MB are left (%s): choose a smaller train.micro_batch, context_length or --workers; "+
		"with train.micro_batch=1 and --workers 1 it would be about %s MB",
		cfg.Name, cfg.Train.MicroBatch, cfg.ContextLength, workers, megabytes(need), megabytes(free.bytes), free.source,
		megabytes(predictMemory(&least, 1)))
}

func megabytes(bytes float64) string { return digits.Comma(int64(bytes / 1e6)) }
