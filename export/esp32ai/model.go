package esp32ai

import (
	"fmt"
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/qat"
	"github.com/chiplm/chiplm/qat/reference"
)

// Model is the model of a file in chiplm's terms.
type Model struct {
	reference.Model
	Notes []string // what a person should know, one sentence each
}

// Model maps the file to a model of that name. entries is the number of entries of the model's tokenizer, 0 if that is not
// known. Every weight, code times scale, is the file's own. Errors wrap [ErrTensor], [ErrVocabulary] or [ErrSizes].
func (f *File) Model(name string, entries int) (*Model, error) {
	c := f.config(name)
	m := &Model{Model: reference.Model{Config: c, Matrices: map[string]*qat.Matrix{}, Floats: map[string][]float32{}}}
	if err := m.vocabulary(&f.Header, entries); err != nil {
		return nil, err
	}
	if err := m.quantisation(f); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSizes, err)
	}
	for i, t := range c.Tensors() {
		from := &f.Tensors[i]
		if t.Class == configs.ClassNorm {
			v, err := from.floats()
			if err != nil {
				return nil, err
			}
			m.Floats[t.Name] = v
			continue
		}
		x, err := from.matrix(t.Quant, t.Rows())
		if err != nil {
			return nil, err
		}
		m.Matrices[t.Name] = x
	}
	m.Cos, m.Sin = qat.Rotary(c.ContextLength, c.DModel/c.NHeads, c.RopeTheta)
	return m, nil
}

// vocabulary leaves out rows of tokens that the model never writes, if the tokenizer shows that it never reads them either.
func (m *Model) vocabulary(h *Header, entries int) error {
	if entries > h.InVocab {
		return fmt.Errorf("%w: the tokenizer has %s entries, the model only %s: give the tokenizer that it was trained with",
			ErrVocabulary, digits.Comma(entries), digits.Comma(h.InVocab))
	}
	if h.OutVocab == h.InVocab {
		return nil
	}
	switch {
	case entries == 0:
		return fmt.Errorf("%w: the model reads %d tokens and writes only the first %d; those above can be left out if no text has them: "+
			"give its tokenizer to show that", ErrVocabulary, h.InVocab, h.OutVocab)
	case entries > h.OutVocab:
		return fmt.Errorf("%w: the model reads %d tokens and writes only the first %d, and the tokenizer has %d: "+
			"a model of chiplm can write every token that it reads", ErrVocabulary, h.InVocab, h.OutVocab, entries)
	}
	m.Config.VocabSize = h.OutVocab
	m.Notes = append(m.Notes, fmt.Sprintf("the rows of tokens %d to %d are left out: the model never writes them, and its tokenizer has no such tokens",
		h.OutVocab, h.InVocab-1))
	return nil
}

// quantisation gives each class of tensors bits and a group that hold all its tensors exactly.
func (m *Model) quantisation(f *File) error {
	c := m.Config
	classes := map[configs.TensorClass]*classQuant{}
	order := []configs.TensorClass{}
	for i, t := range c.Tensors() {
		if t.Class == configs.ClassNorm {
			continue
		}
		q := classes[t.Class]
		if q == nil {
			q = &classQuant{class: t.Class}
			classes[t.Class] = q
			order = append(order, t.Class)
		}
		q.add(&f.Tensors[i], t.Rows())
	}
	for _, class := range order {
		q, err := classes[class].choose()
		if err != nil {
			return err
		}
		m.Notes = append(m.Notes, classes[class].notes...)
		if class == configs.ClassTrunk {
			c.Quant.Weights.Bits, c.Quant.Weights.Group = q.Bits, q.Group
		}
	}
	c.Quant.Classes = map[configs.TensorClass]configs.ClassRule{}
	for _, class := range order {
		q := classes[class].chosen
		var rule configs.ClassRule
		if q.Bits != c.Quant.Weights.Bits {
			rule.Bits = &q.Bits
		}
		if q.Group != c.Quant.Weights.Group {
			rule.Group = &q.Group
		}
		if rule != (configs.ClassRule{}) {
			c.Quant.Classes[class] = rule
		}
	}
	return nil
}

// classQuant looks for one quantisation for the tensors of a class.
type classQuant struct {
	class   configs.TensorClass
	tensors []*Tensor
	lowest  string // a tensor with the code -8; "" if there is none
	chosen  configs.WeightQuant
	notes   []string
}

func (q *classQuant) add(t *Tensor, rows int) {
	q.tensors = append(q.tensors, t)
	if q.lowest == "" && t.holdsLowest(rows) {
		q.lowest = t.Name
	}
}

// choose takes the widest group of an image that holds all scales. A group of the file that is a multiple of it is written
// as several of the same scale.
func (q *classQuant) choose() (configs.WeightQuant, error) {
	q.chosen = configs.WeightQuant{Bits: 4, Scale: configs.ScaleF16}
	if q.lowest != "" {
		q.chosen.Bits = 8
		q.notes = append(q.notes, fmt.Sprintf("%s holds the code -8, which 4 bits of an image have no place for: tensors of the class %s have 8 bits, with the same codes and scales",
			q.lowest, q.class))
	}
	for _, group := range []int{0, 128, 64, 32} {
		if q.fits(group) == nil {
			q.chosen.Group = group
			for _, t := range q.tensors {
				if groups(width(group, t.Cols()), t.Cols()) != t.Groups() {
					q.notes = append(q.notes, fmt.Sprintf("%s has groups of %d columns: tensors of the class %s are written in groups of %d that repeat such a scale",
						t.Name, t.Group, q.class, group))
					break
				}
			}
			return q.chosen, nil
		}
	}
	t := q.fits(32)
	return q.chosen, fmt.Errorf("%w: %s has groups of %d columns; an image has one scale a row, or one for 32 columns or a multiple of them: "+
		"quantise the model anew with such a group", ErrTensor, t.Name, t.Group)
}

// fits gives the first tensor whose scales a group cannot hold, or nil.
func (q *classQuant) fits(group int) *Tensor {
	for _, t := range q.tensors {
		if t.Group < t.Cols() && (group == 0 || t.Group%group != 0) {
			return t
		}
	}
	return nil
}

// width is the number of columns that a group of an image spans.
func width(group, cols int) int {
	if group == 0 {
		return cols
	}
	return group
}

// holdsLowest says whether the code -8 occurs in the first rows.
func (t *Tensor) holdsLowest(rows int) bool {
	stride, cols := rowBytes(t.Cols()), t.Cols()
	for r := range rows {
		for i, b := range t.Codes[r*stride : (r+1)*stride] {
			if b&15 == 0 || b>>4 == 0 && 2*i+1 < cols {
				return true
			}
		}
	}
	return false
}

// matrix is the first rows of a tensor, with the codes and scales of the file.
func (t *Tensor) matrix(q configs.WeightQuant, rows int) (*qat.Matrix, error) {
	cols, have := t.Cols(), t.Groups()
	m := &qat.Matrix{Spec: q, Rows: rows, Cols: cols, Codes: make([]int8, rows*cols), Scales: make([]float32, rows*qat.Groups(q, cols))}
	for r := range rows {
		row := m.Codes[r*cols : (r+1)*cols]
		from := t.Codes[r*rowBytes(cols):]
		for c := range row {
			row[c] = int8(from[c/2]>>(c%2*4)&15) - 8
		}
		scales := m.Scales[r*qat.Groups(q, cols) : (r+1)*qat.Groups(q, cols)]
		for g := range scales {
			at := g * width(q.Group, cols) / t.Group
			half := le.Uint16(t.Scales[2*(r*have+at):])
			if half&0x8000 != 0 || half >= 0x7c00 {
				return nil, fmt.Errorf("%w: %s, row %d, group %d: the scale has the bits %#04x, which are negative or not finite: the file is damaged",
					ErrTensor, t.Name, r, at, half)
			}
			scales[g] = qat.HalfValue(half)
		}
	}
	return m, nil
}

// floats is the values of a norm.
func (t *Tensor) floats() ([]float32, error) {
	v := make([]float32, t.Cols())
	for i := range v {
		v[i] = math.Float32frombits(le.Uint32(t.Floats[4*i:]))
		if a := math.Abs(float64(v[i])); a != 0 && !(a >= 0x1p-126 && a <= math.MaxFloat32) {
			return nil, fmt.Errorf("%w: %s, value %d is %v: an image holds neither subnormal numbers nor what is not finite", ErrTensor, t.Name, i, v[i])
		}
	}
	return v, nil
}
