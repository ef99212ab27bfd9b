package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

	"github.com/chiplm/chiplm/data"
)

// Stories are the held-out stories of a report. Two reports compare when their SHA256 are equal.
type Stories struct {
	Path   string `json:"path"`   // the file, or a built-in corpus
	Count  int    `json:"count"`  //
	Bytes  int64  `json:"bytes"`  // raw bytes of the stories, before any tokenizer
	SHA256 string `json:"sha256"` // of the stories' bytes, each followed by a zero byte

	hash  hash.Hash // of the stories so far
	texts [][]byte
}

// newStories is no story yet of a corpus.
func newStories(corpus data.Corpus) *Stories {
	return &Stories{Path: corpus.Info().Path, hash: sha256.New()}
}

// add counts a story.
func (s *Stories) add(story []byte) {
	s.Count++
	s.Bytes += int64(len(story))
	s.hash.Write(story)
	s.hash.Write([]byte{0})
}

// done fills in the hash of all stories that were added.
func (s *Stories) done() { s.SHA256 = hex.EncodeToString(s.hash.Sum(nil)) }

// first is the first n of the stories, or all when there are fewer.
func (s *Stories) first(n int) *Stories {
	some := &Stories{Path: s.Path, hash: sha256.New(), texts: s.texts[:min(n, len(s.texts))]}
	for _, story := range some.texts {
		some.add(story)
	}
	some.done()
	return some
}

// ReadStories reads the first n stories of a corpus, or all if n is 0 or there are fewer.
func ReadStories(ctx context.Context, corpus data.Corpus, n int) (*Stories, error) {
	s := newStories(corpus)
	err := corpus.Stories(ctx, func(story []byte) error {
		s.texts = append(s.texts, bytes.Clone(story))
		s.add(story)
		if len(s.texts) == n {
			return data.ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(s.texts) == 0 {
		return nil, fmt.Errorf("%s holds no stories to score; name another file with --stories", s.Path)
	}
	s.done()
	return s, nil
}
