package sweep

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/chiplm/chiplm/eval"
	"github.com/chiplm/chiplm/eval/results"
	"github.com/chiplm/chiplm/train"
)

// share is how many of the free workers the next of the waiting runs gets: as many as are there for each of them, and at
// least one.
func share(free, waiting int) int { return max(1, free/max(1, waiting)) }

// work does what is left, on all workers. It returns when all runs are settled, or ctx has ended and those under way have
// come to a stop.
func (s *sweep) work(ctx context.Context) {
	train.SpareProcessors(s.options.Workers)
	var queue []*job
	for _, j := range s.jobs {
		if !j.settled() {
			queue = append(queue, j)
		}
	}
	type ended struct {
		job     *job
		workers int
		need    float64
		again   bool
	}
	finished := make(chan ended)
	free, running := s.options.Workers, map[*job]int{}
	memory, used := train.FreeMemory(), 0.0
	if memory == 0 {
		memory = math.Inf(1) // not known
	}
	for {
		queue = s.withoutPupils(queue)
		for len(queue) > 0 && free > 0 && ctx.Err() == nil {
			next := slices.IndexFunc(queue, (*job).ready)
			if next < 0 {
				break // until a teacher is done
			}
			j := queue[next]
			n := min(share(free, len(queue)), j.plan.MicroBatches)
			if used+j.memory(n) > memory {
				n = 1
			}
			need := j.memory(n)
			if len(running) > 0 && used+need > memory {
				break // until one of them has given its memory back
			}
			queue = slices.Delete(queue, next, next+1)
			free, used, running[j] = free-n, used+need, n
			jobContext, cancel := context.WithCancel(ctx)
			j.set(func() { j.workers, j.move, j.moved = n, cancel, false })
			go func() {
				defer cancel()
				finished <- ended{j, n, need, s.do(jobContext, ctx, j, n)}
			}()
		}
		if len(running) == 0 {
			return
		}
		if free > 0 && !slices.ContainsFunc(queue, (*job).ready) {
			s.moveOne(running, free)
		}
		e := <-finished
		free, used = free+e.workers, used-e.need
		delete(running, e.job)
		if e.again {
			queue = append([]*job{e.job}, queue...)
		}
	}
}

// withoutPupils takes the runs out of a queue whose teachers have come to no score, as broken.
func (s *sweep) withoutPupils(queue []*job) []*job {
	return slices.DeleteFunc(queue, func(j *job) bool {
		if j.wise == nil {
			return false
		}
		why := j.wise.lost()
		if why == nil {
			return false
		}
		j.set(func() { j.state, j.err = broken, why })
		s.show.changed(j)
		return true
	})
}

// moveOne stops the run that has longest to train, if that is worth it, so that it goes on with the idle workers too.
func (s *sweep) moveOne(running map[*job]int, free int) {
	var longest *job
	for j, n := range running {
		j.mu.Lock()
		able := j.state == training && j.move != nil && !j.moved && j.left >= s.worthMoving && min(n+free, j.plan.MicroBatches) > n
		if able && (longest == nil || j.left > longest.left) {
			longest = j
		}
		j.mu.Unlock()
	}
	if longest != nil {
		longest.set(func() {
			longest.moved = true
			longest.move()
		})
	}
}

// do brings a run to its line. It says whether the run is to go on with more workers. ctx ends with sweep, or when the run is
// moved.
func (s *sweep) do(ctx, sweep context.Context, j *job, workers int) (again bool) {
	err := s.step(ctx, sweep, j, workers)
	var moved bool
	j.set(func() { moved, j.move = j.moved, nil })
	switch {
	case err == nil:
		return false
	case sweep.Err() != nil && errors.Is(err, sweep.Err()):
		j.set(func() { j.state = half })
		return false
	case moved && errors.Is(err, context.Canceled):
		return true
	}
	if train.Diverged(err) || errors.Is(err, eval.ErrNotFinite) {
		why := err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			why = cause.Error()
		}
		r := s.line(j)
		r.Failure = why
		if err = results.Append(s.results, r); err == nil {
			j.set(func() { j.state, j.why = failed, why })
			s.show.changed(j)
			return false
		}
	}
	j.set(func() { j.state, j.err = broken, err })
	s.show.changed(j)
	return false
}

// step trains, scores and writes.
func (s *sweep) step(ctx, sweep context.Context, j *job, workers int) error {
	if j.state != trained {
		state := j.state
		j.set(func() { j.state = training })
		s.show.changed(j)
		if err := s.train(ctx, j, workers, state); err != nil {
			j.set(func() { j.state = half })
			return err
		}
	}
	j.set(func() { j.state, j.move = scoring, nil })
	s.show.changed(j)
	r, err := s.score(sweep, j, workers)
	if err != nil {
		j.set(func() { j.state = trained })
		return err
	}
	if err := results.Append(s.results, *r); err != nil {
		return err
	}
	j.set(func() { j.state, j.score, j.model = done, r.Quality.BitsPerByte, r.ModelSHA256 })
	s.show.changed(j)
	return nil
}
