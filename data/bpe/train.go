package bpe

import (
	"context"
	"fmt"
	"slices"
)

// SizeError says that a corpus does not hold enough text for a vocabulary of the size asked for.
type SizeError struct {
	Want      int // entries asked for
	Reachable int // entries after which no two neighbouring tokens are left to merge
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("the corpus has too little text for a vocabulary of %d entries: it ends at %d; "+
		"give more text, or ask for at most %d (a model's vocab_size must be the same)", e.Want, e.Reachable, e.Reachable)
}

// Train learns a vocabulary of exactly size entries. stories calls yield once per story, with bytes that need only be
// valid during the call; an error from yield ends it and is to be returned.
//
// Ids: 0 is the end-of-text token, 1 to 256 the bytes in the order of their characters in GPT-2's alphabet, then the
// merges' results. Each merge joins the pair that occurs most often, the one of the smaller ids where two occur
// equally often. The result depends on nothing but the stories. When the text runs out of pairs the error is a
// [*SizeError]. Memory is bounded by the distinct words, and those by 16 MiB: later new words are not counted.
func Train(ctx context.Context, stories func(yield func([]byte) error) error, size int) (*Tokenizer, error) {
	if size < MinSize {
		return nil, fmt.Errorf("train tokenizer: %d entries are too few: ask for at least %d (end-of-text and the 256 bytes)",
			size, MinSize)
	}
	if size > 1<<30 {
		return nil, fmt.Errorf("train tokenizer: %d entries are too many: ask for at most %d", size, 1<<30)
	}
	words, err := countWords(ctx, stories)
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	tr := newTrainer(words)
	for len(tr.entries) < size {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("train tokenizer: %w", err)
		}
		if !tr.step() {
			return nil, fmt.Errorf("train tokenizer: %w", &SizeError{Want: size, Reachable: len(tr.entries)})
		}
	}
	t, err := newTokenizer(tr.entries, tr.merges, 0)
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	return t, nil
}

// trainer holds all distinct words as linked lists of tokens in a few flat arrays, indexed by position. A merge visits
// the places where its pair occurs and nothing else, so long words cost no more than short ones.
//
// Every merge makes a new entry. Two occurrences of a string that both start and end at token boundaries did so in all
// earlier steps too, hence went through the same merges and consist of the same tokens: so the merge that first makes
// an entry makes it everywhere, and no other pair can make it again. For the same reason a pair gains occurrences only
// in the step that makes the newer of its two tokens, and is queued once.
type trainer struct {
	entries [][]byte
	merges  []merge

	token      []int32 // -1: merged into its left neighbour
	prev, next []int32 // -1: none
	word       []int32 // which word the position belongs to
	weight     []int64 // how often each word occurs

	pairs map[uint64]int32 // pairKey -> index into keys, count and at
	keys  []uint64         // the reverse
	count []int64          // how often the pair occurs; not kept up once it is merged
	at    [][]int32        // positions where it occurs or did, ascending; freed once it is merged
	fresh []int32          // pairs that the queue does not hold yet
	queue heap[queued]
}

// queued is a pair that waits for its turn. Its count may be out of date, but then it is too high: the queue looks
// again before it lets the pair pass.
type queued struct {
	key   uint64
	count int64
	pair  int32
}

func newTrainer(w *wordCounts) *trainer {
	tr := &trainer{
		entries: [][]byte{nil},
		token:   make([]int32, 0, w.bytes),
		prev:    make([]int32, 0, w.bytes),
		next:    make([]int32, 0, w.bytes),
		word:    make([]int32, 0, w.bytes),
		weight:  w.counts,
		pairs:   make(map[uint64]int32),
	}
	tr.queue.less = func(a, b *queued) bool {
		return a.count > b.count || a.count == b.count && a.key < b.key
	}
	var byteID [256]int32
	for _, b := range alphabetOrder() {
		byteID[b] = int32(len(tr.entries))
		tr.entries = append(tr.entries, []byte{b})
	}
	for i, s := range w.words {
		start := int32(len(tr.token))
		for j := range len(s) {
			at := start + int32(j)
			tr.token = append(tr.token, byteID[s[j]])
			tr.prev = append(tr.prev, at-1)
			tr.next = append(tr.next, at+1)
			tr.word = append(tr.word, int32(i))
		}
		tr.prev[start] = -1
		tr.next[len(tr.next)-1] = -1
		for at := start; at < int32(len(tr.token))-1; at++ {
			tr.gain(tr.token[at], tr.token[at+1], at)
		}
	}
	tr.enqueue()
	return tr
}

// step does one merge. It returns false when no pair is left.
func (tr *trainer) step() bool {
	for {
		top, ok := tr.queue.pop()
		if !ok {
			return false
		}
		if now := tr.count[top.pair]; now != top.count {
			if now > 0 {
				top.count = now
				tr.queue.push(top)
			}
			continue
		}
		left, right, result := int32(top.key>>32), int32(uint32(top.key)), int32(len(tr.entries))
		tr.entries = append(tr.entries, slices.Concat(tr.entries[left], tr.entries[right]))
		tr.merges = append(tr.merges, merge{left, right, result})
		at := tr.at[top.pair]
		tr.at[top.pair] = nil
		for _, p := range at {
			tr.join(p, left, right, result)
		}
		tr.enqueue()
		return true
	}
}

// join merges the pair at position at, if it is still there, and counts what that does to the neighbouring pairs.
func (tr *trainer) join(at, left, right, result int32) {
	if tr.token[at] != left {
		return
	}
	gone := tr.next[at]
	if gone < 0 || tr.token[gone] != right {
		return
	}
	before, after := tr.prev[at], tr.next[gone]
	if before >= 0 {
		tr.lose(tr.token[before], left, at)
		tr.gain(tr.token[before], result, before)
	}
	if after >= 0 {
		tr.lose(right, tr.token[after], at)
		tr.gain(result, tr.token[after], at)
		tr.prev[after] = at
	}
	tr.token[at], tr.token[gone], tr.next[at] = result, -1, after
}

func (tr *trainer) lose(left, right, at int32) {
	tr.count[tr.pairs[pairKey(left, right)]] -= tr.weight[tr.word[at]]
}

func (tr *trainer) gain(left, right, at int32) {
	key := pairKey(left, right)
	p, ok := tr.pairs[key]
	if !ok {
		p = int32(len(tr.keys))
		tr.pairs[key] = p
		tr.keys = append(tr.keys, key)
		tr.count = append(tr.count, 0)
		tr.at = append(tr.at, nil)
		tr.fresh = append(tr.fresh, p)
	}
	tr.count[p] += tr.weight[tr.word[at]]
	tr.at[p] = append(tr.at[p], at)
}

// enqueue queues the pairs that have come up since the last time.
func (tr *trainer) enqueue() {
	for _, p := range tr.fresh {
		if tr.count[p] > 0 {
			tr.queue.push(queued{key: tr.keys[p], count: tr.count[p], pair: p})
		}
	}
	tr.fresh = tr.fresh[:0]
}
