package bpe

import (
	"context"
	"fmt"
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
// [*SizeError]. Memory is bounded by the distinct words, and those by 32 MiB: later new words are not counted.
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
	t, err := newTokenizer(tr.entries, lastOfEachPair(tr.merges), 0)
	if err != nil {
		return nil, fmt.Errorf("train tokenizer: %w", err)
	}
	return t, nil
}

// trainer holds all distinct words as linked lists of tokens in a few flat arrays, indexed by position. A merge visits
// the places where its pair occurs and nothing else, so long words cost no more than short ones.
type trainer struct {
	entries [][]byte
	ids     map[string]int32
	merges  []merge

	token      []int32 // -1: merged into its left neighbour
	prev, next []int32 // -1: none
	word       []int32 // which word the position belongs to
	first      []int32 // first position of each word
	weight     []int64 // how often each word occurs

	pairs map[uint64]int32 // pairKey -> index into keys, count and fresh
	keys  []uint64         // the reverse
	count []int64
	fresh [][]int32 // occurrences not yet queued, in ascending order
	dirty []int32   // pairs with fresh occurrences
	queue heap[queued]
}

// queued is a pair that waits for its turn with some of its occurrences. Its count may be out of date: too high, since
// a count that rises is queued anew.
type queued struct {
	key   uint64
	count int64
	pair  int32
	known bool // the pair was queued before, so at may miss occurrences in its words
	at    []int32
}

func newTrainer(w *wordCounts) *trainer {
	tr := &trainer{
		entries: [][]byte{nil},
		ids:     make(map[string]int32),
		token:   make([]int32, 0, w.bytes),
		prev:    make([]int32, 0, w.bytes),
		next:    make([]int32, 0, w.bytes),
		word:    make([]int32, 0, w.bytes),
		first:   make([]int32, 0, len(w.words)),
		weight:  w.counts,
		pairs:   make(map[uint64]int32),
	}
	tr.queue.less = func(a, b *queued) bool {
		return a.count > b.count || a.count == b.count && a.key < b.key
	}
	var byteID [256]int32
	for _, b := range alphabetOrder() {
		byteID[b] = tr.entry(string([]byte{b}))
	}
	for i, s := range w.words {
		start := int32(len(tr.token))
		tr.first = append(tr.first, start)
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
	tr.enqueue(0)
	return tr
}

// entry returns the id of the entry with these bytes, and adds it if it is new.
func (tr *trainer) entry(s string) int32 {
	id, ok := tr.ids[s]
	if !ok {
		id = int32(len(tr.entries))
		tr.ids[s] = id
		tr.entries = append(tr.entries, []byte(s))
	}
	return id
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
		tr.apply(top)
		return true
	}
}

// apply merges the occurrences of a pair. A pair whose result an earlier merge has already made gives no new entry; it
// is a merge all the same. Only the pairs of such a result can be queued twice; then each turn takes the words it was
// queued with whole, so that the result is the one Hugging Face's trainer gives.
func (tr *trainer) apply(top queued) {
	left, right := int32(top.key>>32), int32(uint32(top.key))
	result := tr.entry(string(tr.entries[left]) + string(tr.entries[right]))
	tr.merges = append(tr.merges, merge{left, right, result})
	pairsBefore := int32(len(tr.count))
	if !top.known {
		for _, at := range top.at {
			tr.join(at, left, right, result)
		}
	} else {
		last := int32(-1)
		for _, at := range top.at {
			if w := tr.word[at]; w != last {
				last = w
				for p := tr.first[w]; p >= 0; p = tr.next[p] {
					tr.join(p, left, right, result)
				}
			}
		}
	}
	tr.enqueue(pairsBefore)
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

func (tr *trainer) pair(left, right int32) int32 {
	key := pairKey(left, right)
	p, ok := tr.pairs[key]
	if !ok {
		p = int32(len(tr.count))
		tr.pairs[key] = p
		tr.keys = append(tr.keys, key)
		tr.count = append(tr.count, 0)
		tr.fresh = append(tr.fresh, nil)
	}
	return p
}

func (tr *trainer) lose(left, right, at int32) {
	tr.count[tr.pair(left, right)] -= tr.weight[tr.word[at]]
}

func (tr *trainer) gain(left, right, at int32) {
	p := tr.pair(left, right)
	tr.count[p] += tr.weight[tr.word[at]]
	if len(tr.fresh[p]) == 0 {
		tr.dirty = append(tr.dirty, p)
	}
	tr.fresh[p] = append(tr.fresh[p], at)
}

// enqueue queues the pairs that have gained occurrences. Those from index pairsBefore on are new.
func (tr *trainer) enqueue(pairsBefore int32) {
	for _, p := range tr.dirty {
		at := tr.fresh[p]
		tr.fresh[p] = nil
		if tr.count[p] > 0 {
			tr.queue.push(queued{key: tr.keys[p], pair: p, count: tr.count[p], known: p < pairsBefore, at: at})
		}
	}
	tr.dirty = tr.dirty[:0]
}

// lastOfEachPair drops all but the last merge of each pair, which is the one whose rank counts.
func lastOfEachPair(merges []merge) []merge {
	last := make(map[uint64]int, len(merges))
	for i, m := range merges {
		last[pairKey(m.left, m.right)] = i
	}
	kept := make([]merge, 0, len(last))
	for i, m := range merges {
		if last[pairKey(m.left, m.right)] == i {
			kept = append(kept, m)
		}
	}
	return kept
}
