package bpe

import "hash/maphash"

const (
	maxCachedWord = 64      // bytes; longer words are rare and not worth the room
	minSlots      = 1 << 10 // slots of a new cache
	maxSlots      = 1 << 15 // slots of a full-grown cache, a few MB with its words
)

// wordCache maps words to their ids: an open-addressing table over two arenas, so that a hit allocates nothing.
// When three quarters of its slots are taken it starts afresh, at twice the size until it is full-grown: simpler than
// eviction, and words that occur often come back at once.
type wordCache struct {
	seed  maphash.Seed
	slots []cacheSlot
	used  int
	words []byte
	ids   []int32
}

type cacheSlot struct {
	hash        uint64
	word, ids   uint32 // starts in the arenas
	wordN, idsN uint8  // lengths; wordN 0 is a free slot
}

// find returns the ids of word and slot -1, or the slot at which to add it.
func (c *wordCache) find(word []byte) (ids []int32, slot int) {
	if c.slots == nil {
		c.seed = maphash.MakeSeed()
		c.slots = make([]cacheSlot, minSlots)
	}
	hash := maphash.Bytes(c.seed, word)
	mask := uint64(len(c.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &c.slots[i]
		if s.wordN == 0 {
			return nil, int(i)
		}
		if s.hash == hash && string(c.words[s.word:s.word+uint32(s.wordN)]) == string(word) {
			return c.ids[s.ids : s.ids+uint32(s.idsN)], -1
		}
	}
}

// add stores word and its ids (of at most maxCachedWord bytes, so of at most as many ids) in a slot that find returned.
func (c *wordCache) add(slot int, word []byte, ids []int32) {
	if c.used >= len(c.slots)/4*3 {
		if len(c.slots) < maxSlots {
			c.slots = make([]cacheSlot, 2*len(c.slots))
		} else {
			clear(c.slots)
		}
		c.used, c.words, c.ids = 0, c.words[:0], c.ids[:0]
		return // the slot belongs to the old table; the word is stored when it comes again
	}
	c.slots[slot] = cacheSlot{
		hash: maphash.Bytes(c.seed, word),
		word: uint32(len(c.words)), wordN: uint8(len(word)),
		ids: uint32(len(c.ids)), idsN: uint8(len(ids)),
	}
	c.words = append(c.words, word...)
	c.ids = append(c.ids, ids...)
	c.used++
}
