package shards

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/edsrzf/mmap-go"

	"github.com/chiplm/chiplm/data/regular"
)

// A Shard is an open token shard. It is safe for concurrent use; after Close it must not be used.
type Shard struct {
	path   string
	header Header
	file   mmap.MMap
	tokens []byte // of width bytes each
	ends   []byte // u64 per story: index of the token after its end-of-text
}

// Open maps the shard at path and checks all of it.
func Open(path string) (*Shard, error) {
	s, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("token shard %s %w", path, err)
	}
	return s, nil
}

func open(path string) (*Shard, error) {
	f, err := regular.Open(path)
	switch {
	case errors.Is(err, regular.ErrKind):
		return nil, fmt.Errorf("%w: %w", ErrNotShard, err)
	case err != nil:
		return nil, fmt.Errorf("cannot be opened: %w", err)
	}
	defer f.Close() // the mapping outlives the descriptor
	stat, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if stat.Size() == 0 {
		return nil, ErrNotShard
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot be mapped into memory: %w", err)
	}
	s := &Shard{path: path, file: m}
	if err := s.load(m); err != nil {
		m.Unmap()
		return nil, err
	}
	return s, nil
}

// load checks the bytes of a file and points the shard at them.
func (s *Shard) load(b []byte) error {
	h, crc, err := decode(b, int64(len(b)))
	if err != nil {
		return err
	}
	if crc32.Checksum(b[headerBytes:], castagnoli) != crc {
		return fmt.Errorf("%w: the checksum of its content is wrong", ErrDamaged)
	}
	s.header = h
	s.tokens = b[headerBytes : headerBytes+h.Tokens*h.width()]
	s.ends = b[h.offsetsAt():h.fileBytes()]
	begin := int64(0)
	for i := range h.Stories {
		end := binary.LittleEndian.Uint64(s.ends[8*i:])
		if end <= uint64(begin) || end > uint64(h.Tokens) || s.Token(int64(end)-1) != h.EOT {
			return fmt.Errorf("%w: story %d ends at token %d", ErrDamaged, i, end)
		}
		begin = int64(end)
	}
	if begin != h.Tokens {
		return fmt.Errorf("%w: its stories end at token %d of %d", ErrDamaged, begin, h.Tokens)
	}
	if h.VocabSize != smallVocab {
		for i := range h.Tokens {
			if id := s.Token(i); id < 0 || int(id) >= h.VocabSize {
				return fmt.Errorf("%w: token %d is %d, and the vocabulary has %d entries", ErrDamaged, i, id, h.VocabSize)
			}
		}
	}
	return nil
}

// Close unmaps the file.
func (s *Shard) Close() error {
	m := s.file
	s.file, s.tokens, s.ends = nil, nil, nil
	if m == nil {
		return nil
	}
	if err := m.Unmap(); err != nil {
		return fmt.Errorf("token shard %s cannot be unmapped: %w", s.path, err)
	}
	return nil
}

// Path is the file of the shard.
func (s *Shard) Path() string { return s.path }

// Header says what the shard holds.
func (s *Shard) Header() Header { return s.header }

// Check refuses a shard that was made from another corpus or with another tokenizer, named by their SHA-256 hashes.
// An empty hash is not checked. The error wraps [ErrMismatch].
func (s *Shard) Check(corpusSHA256, tokenizerSHA256 string) error {
	for _, c := range []struct{ of, has, want string }{
		{"corpus", s.header.CorpusSHA256, corpusSHA256},
		{"tokenizer", s.header.TokenizerSHA256, tokenizerSHA256},
	} {
		if c.want != "" && c.has != c.want {
			return fmt.Errorf("token shard %s %w: the %s it was made from has SHA-256 %.12s…, this one %.12s…; tokenize the "+
				"corpus again (chiplm data tokenize)", s.path, ErrMismatch, c.of, c.has, c.want)
		}
	}
	return nil
}

// Token is the token at index i of all, 0 <= i < Header().Tokens.
func (s *Shard) Token(i int64) int32 {
	if s.header.VocabSize <= smallVocab {
		return int32(binary.LittleEndian.Uint16(s.tokens[2*i:]))
	}
	return int32(binary.LittleEndian.Uint32(s.tokens[4*i:]))
}

// bounds are the indices of a story's first token and of the token after its end-of-text.
func (s *Shard) bounds(story int64) (begin, end int64) {
	if story > 0 {
		begin = int64(binary.LittleEndian.Uint64(s.ends[8*(story-1):]))
	}
	return begin, int64(binary.LittleEndian.Uint64(s.ends[8*story:]))
}

// Story appends the tokens of story i to dst, without the end-of-text, 0 <= i < Header().Stories.
func (s *Shard) Story(dst []int32, i int64) []int32 {
	begin, end := s.bounds(i)
	for ; begin < end-1; begin++ {
		dst = append(dst, s.Token(begin))
	}
	return dst
}
