package bpe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"sync"
)

// EndOfText is the name of the one special token, which ends a story.
const EndOfText = "<|endoftext|>"

// MinSize is the smallest vocabulary: the end-of-text token and the 256 bytes.
const MinSize = 257

// merge joins two neighbouring entries into one; its place in the list of merges is its rank.
type merge struct{ left, right, result int32 }

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// Tokenizer turns text into token ids and back. It never changes and is safe for concurrent use.
type Tokenizer struct {
	entries [][]byte // bytes of each id, all of them views of one array; the end-of-text entry is empty
	merges  []merge
	eot     int32

	byteID   [256]int32
	ranks    map[uint64]int32 // pairKey -> index into merges
	encoders sync.Pool        // *encoder
}

// newTokenizer checks that the parts make a tokenizer and joins them. Errors say which entry or merge is wrong.
func newTokenizer(entries [][]byte, merges []merge, eot int32) (*Tokenizer, error) {
	if len(entries) < MinSize {
		return nil, fmt.Errorf("%d entries are too few: a byte-level vocabulary has at least %d", len(entries), MinSize)
	}
	if len(entries) > math.MaxInt32 || len(merges) > math.MaxInt32 {
		return nil, fmt.Errorf("%d entries and %d merges are too many", len(entries), len(merges))
	}
	if eot < 0 || int(eot) >= len(entries) || len(entries[eot]) > 0 {
		return nil, fmt.Errorf("the end-of-text id %d is not an entry without bytes", eot)
	}
	t := &Tokenizer{eot: eot, merges: merges, ranks: make(map[uint64]int32, len(merges))}
	total := 0
	for _, e := range entries {
		total += len(e)
	}
	flat := make([]byte, 0, total)
	t.entries = make([][]byte, len(entries))
	seen := make(map[string]int32, len(entries))
	for i, e := range entries {
		id := int32(i)
		if len(e) == 0 && id != eot {
			return nil, fmt.Errorf("entry %d has no bytes, which only the end-of-text entry %d may", id, eot)
		}
		if string(e) == EndOfText {
			return nil, fmt.Errorf("entry %d spells %s, which is the name of the end-of-text token", id, EndOfText)
		}
		if first, dup := seen[string(e)]; dup {
			return nil, fmt.Errorf("entries %d and %d have the same bytes %q", first, id, e)
		}
		start := len(flat)
		flat = append(flat, e...)
		t.entries[i] = flat[start:len(flat):len(flat)]
		seen[string(e)] = id
	}
	for b := range t.byteID {
		id, ok := seen[string([]byte{byte(b)})]
		if !ok {
			return nil, fmt.Errorf("byte 0x%02x has no entry, so not every text could be encoded", b)
		}
		t.byteID[b] = id
	}
	for rank, m := range merges {
		for _, id := range []int32{m.left, m.right, m.result} {
			if id < 0 || int(id) >= len(entries) || id == eot {
				return nil, fmt.Errorf("merge %d names entry %d, which is no entry with bytes", rank, id)
			}
		}
		left, right, result := t.entries[m.left], t.entries[m.right], t.entries[m.result]
		if len(left)+len(right) != len(result) || string(result[:len(left)]) != string(left) ||
			string(result[len(left):]) != string(right) {
			return nil, fmt.Errorf("merge %d joins %q and %q, but its result is %q", rank, left, right, result)
		}
		key := pairKey(m.left, m.right)
		if first, dup := t.ranks[key]; dup {
			return nil, fmt.Errorf("merges %d and %d join the same pair %q, %q", first, rank, left, right)
		}
		t.ranks[key] = int32(rank)
	}
	t.encoders.New = func() any { return newEncoder(t) }
	return t, nil
}

// Size returns the number of entries, the end-of-text token included: a model's vocab_size.
func (t *Tokenizer) Size() int { return len(t.entries) }

// Merges returns the number of merges: Size()-257 in every vocabulary that Train makes.
func (t *Tokenizer) Merges() int { return len(t.merges) }

// EOT returns the id of the end-of-text token: 0 in every vocabulary that Train makes.
func (t *Tokenizer) EOT() int32 { return t.eot }

// Bytes returns the bytes that id stands for: none for the end-of-text token and for an id outside the vocabulary.
// The caller must not change them.
func (t *Tokenizer) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.entries) {
		return nil
	}
	return t.entries[id]
}

// Decode appends the bytes that ids stand for to dst. The end-of-text token and ids outside the vocabulary add
// nothing. The result need not be valid UTF-8; see [Stream] for decoding text piece by piece.
func (t *Tokenizer) Decode(dst []byte, ids []int32) []byte {
	for _, id := range ids {
		dst = append(dst, t.Bytes(id)...)
	}
	return dst
}

// Hash returns the SHA-256 of JSON() in hexadecimal: the name under which shards, checkpoints and images know the
// tokenizer.
func (t *Tokenizer) Hash() string {
	sum := sha256.Sum256(t.JSON())
	return hex.EncodeToString(sum[:])
}
