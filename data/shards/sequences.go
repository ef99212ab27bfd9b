package shards

import (
	"encoding/binary"
	"fmt"
	"sort"
	"sync"

	"github.com/chiplm/chiplm/data/splitmix"
)

// Sequences are the training sequences of a shard. They are safe for concurrent use.
//
// An epoch holds every story once, in an order shuffled by the seed and the epoch's number, each followed by
// end-of-text. All epochs one after another form an endless stream. The n-th sequence has the targets
// stream[n*T : (n+1)*T], T being the context length, and as ids what comes just before each target; before the very
// first target that is end-of-text. So every token of every story, and every end-of-text, is a target exactly once per
// epoch; nothing is padded or dropped, and a sequence at the end of an epoch goes on into the next one. Each sequence
// is a pure function of shard, context length, seed and n, so the position of a run is one number.
//
// Memory: 12 bytes a story for each of the two epochs last used (some 65 MB for the 2.7 million stories of the whole
// TinyStories data).
type Sequences struct {
	shard   *Shard
	context int
	seed    uint64
	apart   bool

	mu     sync.Mutex
	recent [2]*epoch // latest first; each is immutable
}

// epoch is the order of stories in one epoch.
type epoch struct {
	number int64
	order  []uint32 // order[i] is the story at place i
	ends   []int64  // ends[i] is the index in the epoch of the token after the story at place i
}

// New gives the sequences of a shard for a context length and a seed; apart: none goes across the end of a story. The shard
// must stay open.
func New(shard *Shard, contextLength int, seed uint64, apart bool) (*Sequences, error) {
	if contextLength < 1 {
		return nil, fmt.Errorf("sequences of %d tokens: the context length must be at least 1", contextLength)
	}
	if shard.header.Stories > 1<<32-1 {
		return nil, fmt.Errorf("token shard %s has %d stories, more than can be shuffled", shard.path, shard.header.Stories)
	}
	return &Sequences{shard: shard, context: contextLength, seed: seed, apart: apart}, nil
}

// PerEpoch is the number of sequences that make up an epoch; the last of them may be partial.
func (s *Sequences) PerEpoch() float64 {
	return float64(s.shard.header.Tokens) / float64(s.context)
}

// Sequence puts the n-th sequence, n >= 0, into ids and targets, which must have the context length: targets[i] is the
// token to predict from ids[0..i].
func (s *Sequences) Sequence(n int64, ids, targets []int32) {
	if n < 0 || len(ids) != s.context || len(targets) != s.context {
		panic(fmt.Sprintf("shards: sequence %d of %d and %d tokens, where the context length is %d", n, len(ids),
			len(targets), s.context))
	}
	total := s.shard.header.Tokens
	position := n * int64(s.context)
	ids[0] = s.shard.header.EOT // an epoch ends with end-of-text, so this also holds at the start of any later one
	if position%total > 0 {
		s.copy(ids[:1], position-1)
	}
	s.copy(targets, position)
	copy(ids[1:], targets)
}

// Batch puts the sequences from the n-th on into ids and targets, as many as fill them, and appends their lengths to
// lengths.
//
// With apart, the same targets are in other sequences: a story is cut into windows of the context length, each of which
// starts from end-of-text and is a sequence of its own, as in scoring. A window that does not fit at the end of ids goes on
// in the next batch, without what it had seen.
func (s *Sequences) Batch(n int64, ids, targets []int32, lengths []int) []int {
	for at := 0; at < len(ids); at += s.context {
		s.Sequence(n+int64(at/s.context), ids[at:at+s.context], targets[at:at+s.context])
		if !s.apart {
			lengths = append(lengths, s.context)
		}
	}
	if s.apart {
		lengths = s.windows(n*int64(s.context), ids, lengths)
	}
	return lengths
}

// windows appends the lengths of the windows of a part of the stream, and has those that begin there start from
// end-of-text.
func (s *Sequences) windows(position int64, ids []int32, lengths []int) []int {
	total, context := s.shard.header.Tokens, int64(s.context)
	for len(ids) > 0 {
		e := s.epoch(position / total)
		at := position % total
		place := sort.Search(len(e.ends), func(i int) bool { return e.ends[i] > at })
		begin := int64(0)
		if place > 0 {
			begin = e.ends[place-1]
		}
		seen := (at - begin) % context
		if seen == 0 {
			ids[0] = s.shard.header.EOT
		}
		n := min(context-seen, e.ends[place]-at, int64(len(ids)))
		lengths, ids, position = append(lengths, int(n)), ids[n:], position+n
	}
	return lengths
}

// copy fills dst with the stream from a position on.
func (s *Sequences) copy(dst []int32, position int64) {
	total := s.shard.header.Tokens
	for len(dst) > 0 {
		e := s.epoch(position / total)
		at := position % total
		place := sort.Search(len(e.ends), func(i int) bool { return e.ends[i] > at })
		for ; place < len(e.order) && len(dst) > 0; place++ {
			_, end := s.shard.bounds(int64(e.order[place]))
			n := min(e.ends[place]-at, int64(len(dst)))
			from := end - (e.ends[place] - at)
			s.shard.read(dst[:n], from)
			dst, at, position = dst[n:], at+n, position+n
		}
	}
}

// read fills dst with the tokens from an index on.
func (s *Shard) read(dst []int32, from int64) {
	if s.header.VocabSize <= smallVocab {
		b := s.tokens[2*from:]
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return
	}
	b := s.tokens[4*from:]
	for i := range dst {
		dst[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// epoch gives the order of an epoch, from memory when it is one of the two last used.
func (s *Sequences) epoch(number int64) *epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.recent[0] != nil && s.recent[0].number == number:
	case s.recent[1] != nil && s.recent[1].number == number:
		s.recent[0], s.recent[1] = s.recent[1], s.recent[0]
	default:
		s.recent[0], s.recent[1] = s.shuffle(number), s.recent[0]
	}
	return s.recent[0]
}

// shuffle makes the order of an epoch (Fisher and Yates; Knuth, "Seminumerical Algorithms", algorithm P).
func (s *Sequences) shuffle(number int64) *epoch {
	n := int(s.shard.header.Stories)
	e := &epoch{number: number, order: make([]uint32, n), ends: make([]int64, n)}
	for i := range e.order {
		e.order[i] = uint32(i)
	}
	random := splitmix.New(s.seed, uint64(number))
	for i := n - 1; i > 0; i-- {
		j := random.Below(uint64(i) + 1)
		e.order[i], e.order[j] = e.order[j], e.order[i]
	}
	total := int64(0)
	for i, story := range e.order {
		begin, end := s.shard.bounds(int64(story))
		total += end - begin
		e.ends[i] = total
	}
	return e
}
