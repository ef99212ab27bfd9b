package eval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/chiplm/chiplm/data"
)

// Stories are the held-out stories of a report. Two reports compare when their SHA256 are equal.
type Stories struct {
	Path   string `json:"path"`   // the file, or a built-in corpus
	Count  int    `json:"count"`  //
	Bytes  int64  `json:"bytes"`  // raw bytes of the stories, before any tokenizer
	SHA256 string `json:"sha256"` // of the stories' bytes, each followed by a zero byte

	texts [][]byte
}

// ReadStories reads the first n stories of a corpus, or all if n is 0 or there are fewer.
func ReadStories(ctx context.Context, corpus data.Corpus, n int) (*Stories, error) {
	s := &Stories{Path: corpus.Info().Path}
	hash := sha256.New()
	err := corpus.Stories(ctx, func(story []byte) error {
		s.texts = append(s.texts, bytes.Clone(story))
		s.Bytes += int64(len(story))
		hash.Write(story)
		hash.Write([]byte{0})
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
	s.Count = len(s.texts)
	s.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}
