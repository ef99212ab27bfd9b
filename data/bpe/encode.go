package bpe

// Encode appends the token ids of text to dst. It adds no special tokens: <|endoftext|> in text is plain text.
// Decode of the result is text again, whatever bytes it holds.
func (t *Tokenizer) Encode(dst []int32, text []byte) []int32 {
	e := t.encoders.Get().(*encoder)
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		dst = e.word(dst, text[i:end])
		i = end
	}
	e.trim()
	t.encoders.Put(e)
	return dst
}

// encoder holds what one goroutine needs to encode: a cache of words, and buffers for words that are not in it.
type encoder struct {
	t       *Tokenizer
	cache   wordCache
	symbols []symbol
	queue   heap[candidate]
}

// symbol is a token of the word being merged; the live ones form a linked list.
type symbol struct {
	id         int32 // -1: merged into its left neighbour
	prev, next int   // -1: none
}

// candidate says that the symbol at pos and the one after it can be joined by the merge of this rank.
type candidate struct {
	pos  int
	rank int32
}

func newEncoder(t *Tokenizer) *encoder {
	e := &encoder{t: t}
	e.queue.less = func(a, b *candidate) bool {
		return a.rank < b.rank || a.rank == b.rank && a.pos < b.pos
	}
	return e
}

// trim gives up buffers that an unusually long word has blown up.
func (e *encoder) trim() {
	const keep = 1 << 16
	if cap(e.symbols) > keep {
		e.symbols, e.queue.items = nil, nil
	}
}

func (e *encoder) word(dst []int32, word []byte) []int32 {
	if len(word) > maxCachedWord {
		return e.merge(dst, word)
	}
	ids, slot := e.cache.find(word)
	if slot < 0 {
		return append(dst, ids...)
	}
	start := len(dst)
	dst = e.merge(dst, word)
	e.cache.add(slot, word, dst[start:])
	return dst
}

// merge encodes one word: again and again it joins the pair of lowest rank, the leftmost one first. With a heap of
// the pairs that can be joined this takes O(n log n) for n bytes, also when a text is one long word.
func (e *encoder) merge(dst []int32, word []byte) []int32 {
	e.symbols, e.queue.items = e.symbols[:0], e.queue.items[:0]
	for i, b := range word {
		e.symbols = append(e.symbols, symbol{id: e.t.byteID[b], prev: i - 1, next: i + 1})
	}
	e.symbols[len(word)-1].next = -1
	for i := range e.symbols {
		e.propose(i)
	}
	for {
		c, ok := e.queue.pop()
		if !ok {
			break
		}
		m := e.t.merges[c.rank]
		left := &e.symbols[c.pos]
		if left.id != m.left || left.next < 0 || e.symbols[left.next].id != m.right {
			continue // an earlier merge has taken one of the two
		}
		right := &e.symbols[left.next]
		left.id, left.next, right.id = m.result, right.next, -1
		if left.next >= 0 {
			e.symbols[left.next].prev = c.pos
		}
		e.propose(left.prev)
		e.propose(c.pos)
	}
	for i := 0; i >= 0; i = e.symbols[i].next {
		dst = append(dst, e.symbols[i].id)
	}
	return dst
}

// propose queues the pair that starts at symbol i, if there is one and a merge joins it.
func (e *encoder) propose(i int) {
	if i < 0 || e.symbols[i].next < 0 {
		return
	}
	if rank, ok := e.t.ranks[pairKey(e.symbols[i].id, e.symbols[e.symbols[i].next].id)]; ok {
		e.queue.push(candidate{pos: i, rank: rank})
	}
}
