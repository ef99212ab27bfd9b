package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// chunk is how many values are converted at a time.
const chunk = 16 << 10

// Write stores tensors in the order given, with string metadata if there is any. The bytes depend on nothing else.
// It streams: beyond the tensors it holds a header and one small buffer.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	header, err := encodeHeader(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("safetensors header: %w", err)
	}
	buffer := make([]byte, 0, chunk*4)
	for _, t := range tensors {
		for data := t.Data; len(data) > 0; {
			n := min(len(data), chunk)
			buffer = buffer[:n*4]
			for i, v := range data[:n] {
				binary.LittleEndian.PutUint32(buffer[4*i:], math.Float32bits(v))
			}
			if _, err := w.Write(buffer); err != nil {
				return fmt.Errorf("tensor %s: %w", t.Name, err)
			}
			data = data[n:]
		}
	}
	return nil
}

// encodeHeader gives the length and the JSON header, padded with spaces as the format allows.
func encodeHeader(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	if err := check(tensors); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(make([]byte, lengthBytes))
	b.WriteByte('{')
	field := func(name string, value any) error {
		if b.Len() > lengthBytes+1 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(text)
		return nil
	}
	if len(metadata) > 0 {
		if err := field(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	offset := int64(0)
	for _, t := range tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int{} // null is not a shape
		}
		end := offset + 4*int64(len(t.Data))
		if err := field(t.Name, record{DType: typeF32, Shape: shape, Offsets: []int64{offset, end}}); err != nil {
			return nil, err
		}
		offset = end
	}
	b.WriteByte('}')
	for b.Len()%align != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-lengthBytes > maxHeaderBytes {
		return nil, fmt.Errorf("%w: the header would be larger than %d MiB", ErrTensor, maxHeaderBytes>>20)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-lengthBytes))
	return b.Bytes(), nil
}

// record is one tensor's entry in the header.
type record struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}
