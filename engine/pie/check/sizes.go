package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/engine/pie"
)

const (
	mostSize   = 1 << 16 // of a flag
	mostWork   = 1 << 22 // weights of a matrix, codes of all positions
	manyDraws  = 500
	fewChoices = 6 // sizes with at most so many values that are drawn have no others
)

// size is one of a shape's.
type size struct {
	flag string
	of   func(s *pie.Shape) *int
}

func sizes() []size {
	return []size{
		{"rows", func(s *pie.Shape) *int { return &s.Rows }}, {"columns", func(s *pie.Shape) *int { return &s.Columns }},
		{"group", func(s *pie.Shape) *int { return &s.Group }}, {"listed", func(s *pie.Shape) *int { return &s.Listed }},
		{"n", func(s *pie.Shape) *int { return &s.N }},
	}
}

// allowed says whether a kernel takes a value of a size. Which it takes is what its cases are drawn from: one of a few
// values, or multiples of a step. The error is one of usage.
func allowed(k pie.Kernel, s size, value int) error {
	r := rand.New(rand.NewPCG(1, 1))
	var drawn []int
	for range manyDraws {
		shape := k.Any(r)
		drawn = append(drawn, *s.of(&shape))
	}
	slices.Sort(drawn)
	drawn = slices.Compact(drawn)
	step := 0
	for _, v := range drawn {
		step = gcd(step, v)
	}
	switch {
	case step == 0:
		return usage.Errorf("--%s: %s has no such size", s.flag, k.Symbol)
	case len(drawn) <= fewChoices && !slices.Contains(drawn, value):
		var list []string
		for _, v := range drawn {
			list = append(list, fmt.Sprint(v))
		}
		return usage.Errorf("--%s %d: %s takes %s", s.flag, value, k.Symbol, strings.Join(list, ", "))
	case len(drawn) > fewChoices && (value < step || value%step != 0 || value > mostSize):
		if step == 1 {
			return usage.Errorf("--%s %d: wants 1 to %s", s.flag, value, digits.Comma(mostSize))
		}
		return usage.Errorf("--%s %d: %s takes multiples of %d, up to %s", s.flag, value, k.Symbol, step, digits.Comma(mostSize))
	}
	return nil
}

// together says whether sizes that are allowed alone go with each other. A list of columns is of a transposed matrix.
func together(k pie.Kernel, s pie.Shape) error {
	of, what := s.Rows, "rows"
	if strings.Contains(k.Symbol, "columns") {
		of, what = min(s.Columns, pie.ListedColumns), "columns"
	}
	switch {
	case s.Listed > of:
		return usage.Errorf("--listed %d: a call takes at most %d %s of this matrix", s.Listed, of, what)
	case max(s.Rows, s.N)*max(s.Columns, 1) > mostWork:
		return usage.Errorf("the case has %s values: a trace of more than %s is not made", digits.Comma(max(s.Rows, s.N)*s.Columns), digits.Comma(mostWork))
	}
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
