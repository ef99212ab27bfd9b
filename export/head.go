package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/engine"
	"github.com/chiplm/chiplm/export/clusters"
	"github.com/chiplm/chiplm/export/image"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/qat"
)

const (
	// NoClusters leaves the head whole: a token reads every row.
	NoClusters = 0
	// AutoClusters makes [clusters.DefaultCount] clusters for a head of at least LeastRows rows, none for a smaller one.
	AutoClusters = -1
	// LeastRows is the size from which a head is worth its clusters: below it the rotation and the bounds cost what they save.
	LeastRows = 1024
)

// bestTokens is how many tokens searches look for where they are measured and proved.
const bestTokens = placement.BestTokens

// addClusters gives a model the tensors that let its head be read in part, and says what searches read of it. A head whose
// values allow no bounds stays whole, which is a note, not an error; then the result is nil.
func (b *Built) addClusters(head *qat.Matrix, n int, own *ownText) (*placement.Head, error) {
	c, err := clusters.Make(head, clusters.Options{Count: n, Hidden: own.moment, Seed: 1})
	if errors.Is(err, clusters.ErrRange) {
		b.Notes = append(b.Notes, fmt.Sprintf("the head is read whole, without clusters: %v", err))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("clusters of the head: %w", err)
	}
	if err := c.Holds(head); err != nil {
		return nil, err
	}
	b.Model.Sizes.Clusters = c.Count()
	b.Model.Tensors = append(b.Model.Tensors, headTensors(c)...)
	return measureHead(c, head, own.states), nil
}

// clusterCount is the number of clusters that an option asks for. Those of AutoClusters are left out, with a note, where the
// flash partition has no room for them.
func (b *Built) clusterCount(n int) (int, error) {
	v := b.Config.VocabSize
	switch {
	case n == AutoClusters && v < LeastRows:
		return NoClusters, nil
	case n == AutoClusters:
		more := int64(0)
		for _, t := range image.HeadTensors(v, b.Config.DModel, clusters.DefaultCount) {
			x := emptyTensor(t)
			more += x.StoredBytes() + 2*image.Align + image.TensorBytes // codes and scales are aligned
		}
		if f := b.Target.Flash; f != nil && int64(len(b.Bytes))+more > f.ModelBytes {
			b.Notes = append(b.Notes, fmt.Sprintf("the head is read whole: its clusters take %s bytes, which the flash partition does not have", digits.Comma(more)))
			return NoClusters, nil
		}
		return clusters.DefaultCount, nil
	case n < 0 || n > v:
		return 0, fmt.Errorf("%d clusters of %d tokens are impossible: choose 0 (none) to %d", n, v, v)
	}
	return n, nil
}

// headMatrix is the head as the image quantises it.
func headMatrix(c *configs.Config, tensors map[string][]float32) (*qat.Matrix, error) {
	name := configs.Head
	if c.TieEmbeddings {
		name = configs.TokenEmbedding
	}
	for _, t := range c.Tensors() {
		if t.Name == name {
			return qat.Quantise(t.Quant, tensors[name], t.Rows(), t.Cols())
		}
	}
	return nil, fmt.Errorf("the model has no tensor %s", name)
}

// measureHead is what searches for the best tokens of these states read, on average.
func measureHead(c *clusters.Clusters, head *qat.Matrix, states [][]float32) *placement.Head {
	var sum clusters.Work
	codes := make([]int8, c.D)
	for _, h := range states {
		scale := qat.QuantiseVector(h, codes)
		_, work := c.Search(head, codes, scale, min(bestTokens, c.V), 1)
		sum.Add(work)
	}
	n := float64(len(states))
	return &placement.Head{Clusters: c.Count(), Rows: float64(sum.Rows) / n,
		Blocks: [2]float64{float64(sum.Blocks[0]) / n, float64(sum.Blocks[1]) / n}}
}

// headTensors lays clusters out as docs/image.md says.
func headTensors(c *clusters.Clusters) []image.Tensor {
	var out []image.Tensor
	for i, t := range image.HeadTensors(c.V, c.D, c.Count()) {
		x := image.Tensor{Name: t.Name, Rows: t.Rows(), Cols: t.Cols(), Bits: t.Quant.Bits, ScaleType: image.ScaleTypeOf(t.Quant)}
		switch i {
		case 0:
			x.Codes, x.Scales = c.Rotation.PackCodes(), c.Rotation.PackScales()
		case 1:
			x.Codes = boundsBytes(c)
		case 2, 3:
			x.Codes = c.Levels[i-2].Blocks
		case 4:
			for _, id := range c.Order {
				x.Codes = binary.LittleEndian.AppendUint32(x.Codes, uint32(id))
			}
		}
		x.Codes = append(x.Codes, make([]byte, x.Rows*x.Stride()-len(x.Codes))...)
		out = append(out, x)
	}
	return out
}

// boundsBytes is head_bounds.
func boundsBytes(c *clusters.Clusters) []byte {
	var b []byte
	add := func(values ...float32) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	add(c.RowNorm, c.NormStep)
	add(c.BoxSteps[:]...)
	add(0, 0, 0)
	add(c.Weights...)
	for i := range c.Levels {
		l := &c.Levels[i]
		add(l.NormStep, 0)
		for _, d := range l.Dims {
			b = binary.LittleEndian.AppendUint32(b, uint32(d))
		}
		add(l.Steps[:]...)
		add(l.Weights...)
	}
	for _, box := range c.Boxes {
		for _, v := range append(box.Low[:], box.High[:]...) {
			b = append(b, byte(v))
		}
		b = append(b, box.Norm, 0)
	}
	for _, f := range c.First {
		b = binary.LittleEndian.AppendUint32(b, uint32(f))
	}
	return b
}

// headClusters reads what headTensors wrote; nil for an image without clusters. The image was read, so the lengths are
// right.
func headClusters(f *image.File) (*clusters.Clusters, error) {
	n := f.Sizes.Clusters
	if n == 0 {
		return nil, nil
	}
	rotation := f.Tensor(image.HeadRotation)
	c := &clusters.Clusters{V: f.Sizes.VocabSize, D: f.Sizes.DModel}
	spec := qat.Spec{Bits: rotation.Bits, Group: rotation.Group, Scale: configs.ScaleF32}
	if rotation.ScaleType == image.ScaleF16 {
		spec.Scale = configs.ScaleF16
	}
	var err error
	if c.Rotation, err = qat.Unpack(spec, c.D, c.D, rotation.Codes, rotation.Scales); err != nil {
		return nil, fmt.Errorf("%s: %w", rotation.Name, err)
	}
	b := f.Tensor(image.HeadBounds).Codes
	word := func() uint32 {
		v := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return v
	}
	floats := func(into []float32) {
		for i := range into {
			into[i] = math.Float32frombits(word())
		}
	}
	var head [8]float32
	floats(head[:])
	c.RowNorm, c.NormStep = head[0], head[1]
	copy(c.BoxSteps[:], head[2:])
	c.Weights = make([]float32, c.D)
	floats(c.Weights)
	for i := range c.Levels {
		l := &c.Levels[i]
		var step [2]float32
		floats(step[:])
		l.NormStep, l.Weights = step[0], make([]float32, c.D)
		for j := range l.Dims {
			l.Dims[j] = int32(word())
		}
		floats(l.Steps[:])
		floats(l.Weights)
		l.Blocks = f.Tensor([]string{image.HeadBlocks0, image.HeadBlocks1}[i]).Codes
	}
	for range n {
		var box clusters.Box
		for j := range clusters.BoxDims {
			box.Low[j], box.High[j] = int8(b[j]), int8(b[clusters.BoxDims+j])
		}
		box.Norm = b[2*clusters.BoxDims]
		c.Boxes = append(c.Boxes, box)
		b = b[8:]
	}
	for range n + 1 {
		c.First = append(c.First, int32(word()))
	}
	b = f.Tensor(image.HeadOrder).Codes
	for range c.V {
		c.Order = append(c.Order, int32(word()))
	}
	return c, nil
}

// checkClusters holds the bounds of a clustered head to the rows that they stand for.
func checkClusters(f *image.File) error {
	c, err := headClusters(f)
	if c == nil || err != nil {
		return err
	}
	t := f.Tensor(configs.Head)
	if t == nil {
		t = f.Tensor(configs.TokenEmbedding)
	}
	spec := qat.Spec{Bits: t.Bits, Group: t.Group, Scale: configs.ScaleF32}
	if t.ScaleType == image.ScaleF16 {
		spec.Scale = configs.ScaleF16
	}
	head, err := qat.Unpack(spec, t.Rows, t.Cols, t.Codes, t.Scales)
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	if err := c.Holds(head); err != nil {
		return fmt.Errorf("%w: %w", image.ErrClusters, err)
	}
	return nil
}

// verifySearch holds the search of a clustered head to the full head along the golden: the best token, and as many as are
// drawn from.
func verifySearch(im *engine.Image) error {
	if im.Model().Clusters == 0 {
		return nil
	}
	e, err := engine.New(im, engine.Options{Batch: 1})
	if err != nil {
		return err
	}
	defer e.Close()
	for _, k := range []int{1, bestTokens} {
		var found [2][][]engine.TokenLogit
		for i, search := range []engine.Search{im.Certified(), {Full: true}} {
			e.Reset()
			for _, id := range im.Golden().IDs {
				best, err := e.ForwardBest([]int32{id}, search, k)
				if err != nil {
					return fmt.Errorf("searching the head: %w", err)
				}
				found[i] = append(found[i], best)
			}
		}
		for p := range found[0] {
			if !slices.Equal(found[0][p], found[1][p]) {
				return fmt.Errorf("%w: the search for the best %d tokens at position %d of the golden misses some", image.ErrClusters, k, p)
			}
		}
	}
	return nil
}
