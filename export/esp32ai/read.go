package esp32ai

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/regular"
)

// File is a file that was read.
type File struct {
	Header
	Tensors []Tensor // in the order of the file, which is that of [configs.Config.Tensors]
	Bytes   int64
	SHA256  [sha256.Size]byte
}

// Tensor is a tensor as the file stores it. Its bytes alias the file's.
type Tensor struct {
	configs.Tensor        // name, shape and class in chiplm's terms
	Group          int    // columns that share a scale; the last group may be shorter
	Codes          []byte // rows of nibbles, low nibble first, each value + 8; a row starts on a byte. Nil for a norm.
	Scales         []byte // float16, rows x groups
	Floats         []byte // float32, of a norm
}

// Groups is the number of scales in a row.
func (t *Tensor) Groups() int { return groups(t.Group, t.Cols()) }

func groups(group, cols int) int { return (cols-1)/group + 1 }

func rowBytes(cols int) int { return (cols + 1) / 2 }

// Code is the code at a row and column: -8 to 7.
func (t *Tensor) Code(row, col int) int {
	return int(t.Codes[row*rowBytes(t.Cols())+col/2]>>(col%2*4)&15) - 8
}

// Open reads the file at path. It looks at the header and the length before it reads the rest. Errors are those of [Parse]
// with the path.
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("a model file of esp32-ai is wanted: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b, err := read(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// read reads a file whose header allows its length.
func read(r io.ReaderAt, size int64) ([]byte, error) {
	head := make([]byte, min(size, headerBytes))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, int64(len(head))), head); err != nil {
		return nil, err
	}
	h, err := ParseHeader(head)
	if err != nil {
		return nil, err
	}
	if err := h.allows(size); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), b); err != nil {
		return nil, err
	}
	return b, nil
}

// allows says whether a file of that header may have that length: the size of the groups is not known yet, so it lies
// between one scale a row and one a weight.
func (h *Header) allows(size int64) error {
	least, most := int64(h.headerLength), int64(h.headerLength)
	for _, t := range h.config("esp32-ai").Tensors() {
		rows, cols := int64(t.Rows()), int64(t.Cols())
		if t.Class == configs.ClassNorm {
			least += 4 * cols
			most += 4 * cols
			continue
		}
		codes := 4 + rows*int64(rowBytes(t.Cols()))
		least += codes + 2*rows
		most += codes + 2*rows*cols
	}
	if size < least {
		return fmt.Errorf("%w: %s bytes, its header asks for at least %s: copy it again", ErrLength, digits.Comma(size), digits.Comma(least))
	}
	if size > most {
		return fmt.Errorf("%w: %s bytes, its header asks for at most %s: give the model file alone", ErrLength, digits.Comma(size), digits.Comma(most))
	}
	return nil
}

// Parse reads a whole file. Tensors alias b. Errors wrap those of [ParseHeader], or [ErrTensor].
func Parse(b []byte) (*File, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	if err := h.allows(int64(len(b))); err != nil {
		return nil, err
	}
	f := &File{Header: *h, Bytes: int64(len(b)), SHA256: sha256.Sum256(b)}
	at := h.headerLength
	// take gives the next bytes of a part of a tensor; n is at most 4 times what the header allowed.
	take := func(t *configs.Tensor, part string, n int) ([]byte, error) {
		if n > len(b)-at {
			return nil, fmt.Errorf("%w: the %s of %s need %s bytes from byte %s on, the file has %s: it is cut short, or of another variant of the format",
				ErrLength, part, t.Name, digits.Comma(n), digits.Comma(at), digits.Comma(len(b)))
		}
		at += n
		return b[at-n : at : at], nil
	}
	for _, t := range h.config("esp32-ai").Tensors() {
		x := Tensor{Tensor: t}
		if t.Class == configs.ClassNorm {
			if x.Floats, err = take(&t, "values", 4*t.Cols()); err != nil {
				return nil, err
			}
			f.Tensors = append(f.Tensors, x)
			continue
		}
		g, err := take(&t, "group", 4)
		if err != nil {
			return nil, err
		}
		if x.Group = int(int32(le.Uint32(g))); x.Group < 1 {
			return nil, fmt.Errorf("%w: %s (at byte %s): a group of %d columns is impossible: the file is damaged, or of another variant of the format",
				ErrTensor, t.Name, digits.Comma(at-4), x.Group)
		}
		if x.Codes, err = take(&t, "codes", t.Rows()*rowBytes(t.Cols())); err != nil {
			return nil, err
		}
		if x.Scales, err = take(&t, "scales", 2*t.Rows()*x.Groups()); err != nil {
			return nil, err
		}
		f.Tensors = append(f.Tensors, x)
	}
	if at != len(b) {
		return nil, fmt.Errorf("%w: %s bytes follow the last tensor: give the model file alone", ErrLength, digits.Comma(len(b)-at))
	}
	return f, nil
}
