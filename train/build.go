package train

import (
	"context"

	"github.com/chiplm/chiplm/arch"
)

// buildGraph builds a graph, which can take long for a deep model and knows no interrupt. When ctx ends first, the
// build is left to itself, and its graph is given up as soon as it is there.
func buildGraph(ctx context.Context, build Builder, opt arch.Options) (Graph, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type result struct {
		graph Graph
		err   error
	}
	done := make(chan result, 1)
	go func() {
		g, err := build(opt)
		done <- result{g, err}
	}()
	select {
	case r := <-done:
		return r.graph, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.graph.Close() // it only gives memory back
			}
		}()
		return nil, ctx.Err()
	}
}
