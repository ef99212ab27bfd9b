package shards

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/regular"
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
		return nil, unusable(dir, cacheDir, err)
	}
	if err := Write(ctx, path, corpus, tok, progress); err != nil {
		return nil, unusable(dir, cacheDir, err)
	}
	return Open(path)
}

// unusable explains an error of the cache folder to those who never named it; any other stays as it is. cacheDir is what the
// caller of [Build] named, if anything.
func unusable(dir, cacheDir string, err error) error {
	if cacheDir != "" || errors.Is(err, regular.ErrKind) { // a folder in a shard's place is no fault of the cache folder
		return err
	}
	named := "the default, as " + CacheVariable + " is not set"
	if os.Getenv(CacheVariable) != "" {
		named = "which " + CacheVariable + " names"
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w; the tokens of a corpus are kept in the folder %s (%s): make room there, or set %s to a folder that has it",
			err, dir, named, CacheVariable)
	}
	var cause error
	if place := new(placeError); errors.As(err, &place) {
		cause = regular.Cause(place)
	} else if opened := new(fs.PathError); errors.As(err, &opened) && filepath.Dir(opened.Path) == filepath.Clean(dir) {
		cause = opened
	} else {
		return err
	}
	return fmt.Errorf("the tokens of a corpus are kept in the folder %s (%s), which cannot be used: %w; set %s to a folder that can be written",
		dir, named, cause, CacheVariable)
}
