package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/data"
)

// CacheVariable names the environment variable that moves the cache folder.
const CacheVariable = "CHIPLM_CACHE"

// CacheDir is the folder in which [Build] keeps shards: dir when it is not empty, else the environment variable
// CHIPLM_CACHE, else "chiplm" in the user's cache folder.
func CacheDir(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	if dir = os.Getenv(CacheVariable); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder is known: set %s to a folder for tokenised corpora (%w)", CacheVariable, err)
	}
	return filepath.Join(dir, "chiplm"), nil
}

// Build opens the shard of a corpus and a tokenizer in the cache folder ([CacheDir] of cacheDir), and writes it first
// when it is not there or damaged. progress may be nil.
func Build(ctx context.Context, corpus data.Corpus, tok Tokenizer, cacheDir string, progress Progress) (*Shard, error) {
	dir, err := CacheDir(cacheDir)
	if err != nil {
		return nil, err
	}
	corpusSum, tokSum := corpus.Info().SHA256, tok.Hash()
	path := filepath.Join(dir, fmt.Sprintf("shard-%.20s-%.20s.tokens", corpusSum, tokSum))
	s, err := Open(path)
	switch {
	case err == nil:
		if err = s.Check(corpusSum, tokSum); err == nil {
			return s, nil
		}
		s.Close()
		return nil, err
	case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotShard) &&
		!errors.Is(err, ErrVersion):
		return nil, err
	}
	if err := Write(ctx, path, corpus, tok, progress); err != nil {
		return nil, err
	}
	return Open(path)
}
