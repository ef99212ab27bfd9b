package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/chiplm/chiplm/configs"
)

// The opponent's model file, version 2, little endian:
//
//	u32 magic, i32 version, i32 x 7 sizes, u8 whether the head is the embedding, i32 group; zeros up to 256 bytes
//	float32 norms: of attention, a row for each layer; of the feed-forward, likewise; of the output
//	quantised tensors: the embedding, then over all layers queries, then keys, values, attention's output, gate, down, up
//
// A quantised tensor is all its codes, int8, then all its scales, float32: one for each group of codes in a row.
const (
	fileMagic   = 0x616b3432
	fileVersion = 2
	headerBytes = 256
	largestCode = 127
)

// writeModel writes weights, by the names of [configs.Config.Tensors], as the opponent's model file.
func writeModel(w io.Writer, s Shape, weights map[string][]float32) error {
	f := &modelWriter{w: bufio.NewWriterSize(w, 1<<20), group: s.Group}
	f.header(s)
	norms := func(part string) {
		for l := range s.Layers {
			f.values(weights[configs.LayerTensor(l, part)])
		}
	}
	norms(configs.AttentionNorm)
	norms(configs.FFNNorm)
	f.values(weights[configs.OutputNorm])

	f.quantised(weights[configs.TokenEmbedding])
	square := s.DModel * s.DModel
	for i := range 3 { // queries, keys, values
		for l := range s.Layers {
			part := weights[configs.LayerTensor(l, configs.QKV)][i*square : (i+1)*square]
			if i < 2 {
				part = neighbourPairs(part, s)
			}
			f.quantised(part)
		}
	}
	for _, part := range []string{configs.AttentionOutput, configs.Gate, configs.Down, configs.Up} {
		for l := range s.Layers {
			f.quantised(weights[configs.LayerTensor(l, part)])
		}
	}
	if f.err != nil {
		return f.err
	}
	return f.w.Flush()
}

// neighbourPairs reorders the rows of queries or keys: the opponent rotates elements 2i and 2i+1 of a head together,
// chiplm i and i+d/2. Scores do not depend on the order, as long as it is the same for both.
func neighbourPairs(w []float32, s Shape) []float32 {
	out := make([]float32, len(w))
	d := s.DModel / s.Heads
	row := func(of []float32, head, i int) []float32 {
		at := (head*d + i) * s.DModel
		return of[at : at+s.DModel]
	}
	for h := range s.Heads {
		for i := range d / 2 {
			copy(row(out, h, 2*i), row(w, h, i))
			copy(row(out, h, 2*i+1), row(w, h, i+d/2))
		}
	}
	return out
}

// modelWriter writes the parts of a model file and keeps the first error.
type modelWriter struct {
	w     *bufio.Writer
	group int
	err   error
}

func (f *modelWriter) bytes(b []byte) {
	if f.err == nil {
		_, f.err = f.w.Write(b)
	}
}

func (f *modelWriter) header(s Shape) {
	var b []byte
	for _, v := range []int{fileMagic, fileVersion, s.DModel, s.DFF, s.Layers, s.Heads, s.Heads, s.Vocab, s.Context} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	b = append(b, 1) // the head is the embedding
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Group))
	f.bytes(append(b, make([]byte, headerBytes-len(b))...))
}

func (f *modelWriter) values(v []float32) {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	f.bytes(b)
}

// quantised writes a matrix whose rows are whole groups.
func (f *modelWriter) quantised(w []float32) {
	codes := make([]byte, len(w))
	scales := make([]float32, len(w)/f.group)
	for g := range scales {
		part := w[g*f.group : (g+1)*f.group]
		largest := float32(0)
		for _, x := range part {
			largest = max(largest, x, -x)
		}
		if largest == 0 {
			continue
		}
		scales[g] = largest / largestCode
		for i, x := range part {
			codes[g*f.group+i] = byte(int8(math.Round(float64(x / scales[g]))))
		}
	}
	f.bytes(codes)
	f.values(scales)
}

// pieceBytes is the length of the text of a token: its id in hexadecimal.
const pieceBytes = 6

func piece(id int) string { return fmt.Sprintf("%0*x", pieceBytes, id) }

// writeTokenizer writes the opponent's tokenizer file: the length of the longest token, then of each its score, length
// and text. No text is written for a model but those of its own tokens, from which the ids are read again.
func writeTokenizer(w io.Writer, vocab int) error {
	b := binary.LittleEndian.AppendUint32(nil, pieceBytes)
	for id := range vocab {
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, pieceBytes)
		b = append(b, piece(id)...)
	}
	_, err := w.Write(b)
	return err
}

// writeFile makes a file of what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	return f.Close()
}
