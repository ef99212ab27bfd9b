package train

import (
	"sync"

	"github.com/chiplm/chiplm/arch/profile"
)

// gradientSum adds up the gradients of a step's micro-batches in their order, so that the sum is the same bits on any
// number of workers. It is done in stages, each with a turn of its own: while one micro-batch is at the second stage, the
// next may be at the first. So workers that finish together wait for one another's first stage only.
type gradientSum struct {
	params []*Parameter
	stages [][]piece // of rows

	mu   sync.Mutex
	cond *sync.Cond
	turn []int // by stage: the micro-batch that comes next
	err  error // of the first micro-batch that failed
}

func newGradientSum(params []*Parameter) *gradientSum {
	s := &gradientSum{params: params}
	s.cond = sync.NewCond(&s.mu)
	var stage []piece
	size := 0
	for i, p := range params {
		for _, c := range cut(nil, i, len(p.touched), max(1, pieceSize/p.cols)) {
			stage = append(stage, c)
			if size += (c.to - c.from) * p.cols; size >= pieceSize/2 {
				s.stages, stage, size = append(s.stages, stage), nil, 0
			}
		}
	}
	if stage != nil {
		s.stages = append(s.stages, stage)
	}
	s.turn = make([]int, len(s.stages))
	return s
}

// start makes the sum ready for a step.
func (s *gradientSum) start() {
	s.err = nil
	clear(s.turn)
}

// take adds the gradient of micro-batch i, which g has computed, when its turn comes. err says that the micro-batch
// failed; the step then ends, and so it does when an earlier one has. It says whether to go on.
func (s *gradientSum) take(i int, g Graph, err error, p *profile.Profile) bool {
	p.Lap(profile.Cost{})
	for stage, pieces := range s.stages {
		ok := s.wait(i, stage, err)
		p.Lap(profile.Cost{Kind: profile.Waiting})
		if !ok {
			return false
		}
		gradients, rows, values := g.Gradients(), g.GradientRows(), 0
		for _, c := range pieces {
			values += s.params[c.param].add(gradients[c.param], rows[c.param], c.from, c.to, i == 0)
		}
		p.Lap(profile.Memory(profile.GradientSum, values))
		s.mu.Lock()
		s.turn[stage]++
		s.mu.Unlock()
		s.cond.Broadcast()
	}
	return true
}

// wait returns when a stage is micro-batch i's, or with false when the step has failed; err makes it fail at its turn.
func (s *gradientSum) wait(i, stage int, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.turn[stage] != i && s.err == nil {
		s.cond.Wait()
	}
	if s.err == nil && err != nil {
		s.err = err
		s.cond.Broadcast()
	}
	return s.err == nil
}

// finish ends a step that did not fail.
func (s *gradientSum) finish() {
	for _, p := range s.params {
		p.finish()
	}
}
