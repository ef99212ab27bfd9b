package bpe

import "context"

// maxDistinctBytes bounds the memory of training on a corpus of any size: once the distinct words add up to this,
// only those already known are counted. English reaches it nowhere near: the whole of TinyStories has under 1 MB.
const maxDistinctBytes = 16 << 20

// wordCounts holds the distinct words of a corpus in order of first appearance, and how often each occurs.
type wordCounts struct {
	index  map[string]int32
	words  []string
	counts []int64
	bytes  int
}

// countWords splits every story and counts its words, leading space and all.
func countWords(ctx context.Context, stories func(yield func([]byte) error) error) (*wordCounts, error) {
	w := &wordCounts{index: make(map[string]int32)}
	err := stories(func(story []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := 0; i < len(story); {
			end := wordEnd(story, i)
			w.add(story[i:end])
			i = end
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, ctx.Err()
}

func (w *wordCounts) add(word []byte) {
	if i, ok := w.index[string(word)]; ok {
		w.counts[i]++
		return
	}
	if w.bytes+len(word) > maxDistinctBytes {
		return
	}
	s := string(word)
	w.index[s] = int32(len(w.words))
	w.words = append(w.words, s)
	w.counts = append(w.counts, 1)
	w.bytes += len(s)
}
