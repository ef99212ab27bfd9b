package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// Read gives the tensors of a file of size bytes, in the order of their values. r is read once, front to back and to
// its end, in modest pieces.
func Read(r io.Reader, size int64) ([]Tensor, error) {
	var length [lengthBytes]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, shortRead("header length", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeaderBytes {
		return nil, fmt.Errorf("%w: a header of %d bytes is larger than the limit of %d MiB", ErrHeader, n, maxHeaderBytes>>20)
	}
	if size < lengthBytes+int64(n) {
		return nil, fmt.Errorf("%w: a header of %d bytes in a file of %d", ErrSize, n, size)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, shortRead("header", err)
	}
	tensors, err := decodeHeader(header, size-lengthBytes-int64(n))
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, chunk*4)
	for i := range tensors {
		t := &tensors[i]
		count, _ := elements(t.Shape)
		t.Data = make([]float32, count)
		for data := t.Data; len(data) > 0; {
			n := min(len(data), chunk)
			if _, err := io.ReadFull(r, buffer[:4*n]); err != nil {
				return nil, shortRead("tensor "+t.Name, err)
			}
			for j := range n {
				data[j] = math.Float32frombits(binary.LittleEndian.Uint32(buffer[4*j:]))
			}
			data = data[n:]
		}
	}
	switch k, err := r.Read(buffer[:1]); {
	case k > 0:
		return nil, fmt.Errorf("%w: there are bytes after the last tensor", ErrSize)
	case err != nil && err != io.EOF:
		return nil, err
	}
	return tensors, nil
}

func shortRead(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends inside the %s", ErrSize, what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// decodeHeader checks the header against the number of bytes of values, and gives the tensors without values, in the
// order of their offsets.
func decodeHeader(header []byte, valueBytes int64) ([]Tensor, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrHeader}, args...)...)
	}
	if !utf8.Valid(header) {
		return nil, bad("it is not UTF-8")
	}
	if len(header) == 0 || header[0] != '{' {
		return nil, bad("it does not start with '{'")
	}
	// Token by token: a decoder into a map would drop a name that is given twice.
	source := bytes.NewReader(header)
	d := json.NewDecoder(source)
	if _, err := d.Token(); err != nil {
		return nil, bad("%v", err)
	}
	type placed struct {
		Tensor
		begin, end int64
	}
	var list []placed
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, bad("%v", err)
		}
		name, ok := token.(string)
		if !ok {
			return nil, bad("a name is missing")
		}
		if seen[name] {
			return nil, bad("%s is there twice", shorten(name))
		}
		seen[name] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, bad("%v", err)
		}
		if name == metadataKey {
			var metadata map[string]string
			if err := json.Unmarshal(raw, &metadata); err != nil {
				return nil, bad("%s: %v", metadataKey, err)
			}
			continue
		}
		var rec record
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&rec); err != nil {
			return nil, bad("%s: %v", shorten(name), err)
		}
		if rec.DType != typeF32 {
			return nil, fmt.Errorf("%w: %s is %s", ErrType, shorten(name), shorten(rec.DType))
		}
		count, ok := elements(rec.Shape)
		if name == "" || rec.Shape == nil || len(rec.Shape) > maxDimensions || !ok || len(rec.Offsets) != 2 {
			return nil, bad("%s has an impossible name, shape or range", shorten(name))
		}
		begin, end := rec.Offsets[0], rec.Offsets[1]
		if begin < 0 || end < begin || end > valueBytes || end-begin != 4*count {
			return nil, bad("%s: bytes %d to %d do not fit its shape %v in %d bytes of values", shorten(name), begin, end, rec.Shape, valueBytes)
		}
		list = append(list, placed{Tensor{Name: name, Shape: rec.Shape}, begin, end})
	}
	if _, err := d.Token(); err != nil {
		return nil, bad("%v", err)
	}
	if rest, _ := io.ReadAll(io.MultiReader(d.Buffered(), source)); len(bytes.Trim(rest, " \x00")) > 0 {
		return nil, bad("there is text after it")
	}
	slices.SortStableFunc(list, func(a, b placed) int {
		if a.begin != b.begin {
			return int(min(max(a.begin-b.begin, -1), 1))
		}
		return int(min(max(a.end-b.end, -1), 1))
	})
	tensors := make([]Tensor, 0, len(list))
	at := int64(0)
	for _, p := range list {
		if p.begin != at {
			return nil, bad("%s starts at byte %d where %d is due: ranges overlap or leave a hole", shorten(p.Name), p.begin, at)
		}
		at = p.end
		tensors = append(tensors, p.Tensor)
	}
	if at != valueBytes {
		return nil, fmt.Errorf("%w: %d bytes of values, the header says %d", ErrSize, valueBytes, at)
	}
	return tensors, nil
}

func shorten(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return fmt.Sprintf("%q", s)
}
