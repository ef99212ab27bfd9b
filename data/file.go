package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// file is a corpus in a file.
type file struct {
	info Info
	mark int64 // bytes of the byte-order mark
}

// Open opens a corpus: a file, or the generator as "builtin", "builtin:seed" or "builtin:seed:stories". A path that
// names no file but ends in "#train" or "#held-out" is that part of the corpus before it (see [Split]). The path in
// the Info of any corpus opens that corpus again.
//
// A file is read once, whole, to take its hash.
func Open(path string) (Corpus, error) { return OpenContext(context.Background(), path) }

// OpenContext is [Open] with a context that can stop the reading of a long file.
func OpenContext(ctx context.Context, path string) (Corpus, error) {
	if path == builtinName || strings.HasPrefix(path, builtinName+":") {
		return openBuiltin(path)
	}
	c, err := openFile(ctx, path)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return c, err
	}
	for _, part := range []string{partTrain, partHeldOut} {
		if whole, ok := strings.CutSuffix(path, part); ok {
			c, err := OpenContext(ctx, whole)
			if err != nil {
				return nil, err
			}
			return Split(c, part == partHeldOut), nil
		}
	}
	return nil, err
}

func openFile(ctx context.Context, path string) (Corpus, error) {
	if path == "" {
		return nil, errors.New("no corpus is named: give a text or JSON file, or \"builtin\"")
	}
	fail := func(err error) (Corpus, error) { return nil, fmt.Errorf("corpus %s %w", path, err) }
	stat, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return fail(fmt.Errorf("does not exist: check the path, or use \"builtin\" for the built-in stories (%w)", err))
	}
	if err != nil {
		return fail(fmt.Errorf("cannot be read: %w", err))
	}
	if stat.IsDir() {
		return fail(errors.New("is a directory: " + fileInside(path)))
	}
	if !stat.Mode().IsRegular() {
		return fail(errors.New("is a device or pipe, which cannot be read twice: write it to a file first"))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return fail(err)
	}
	head, sum, size, delimiter, err := survey(ctx, abs)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return nil, stoppedReading(path, cause)
	}
	if err != nil {
		return fail(fmt.Errorf("cannot be read: %w", err))
	}
	if size == 0 {
		return fail(errors.New("is empty: give a file with stories"))
	}
	text, marked := bytes.CutPrefix(head, []byte(bom))
	if err := refuse(text); err != nil {
		return fail(err)
	}
	f := &file{info: Info{Path: abs, Name: filepath.Base(abs), Kind: detect(text, delimiter), SHA256: sum, Bytes: size}}
	if marked {
		f.mark = int64(len(bom))
	}
	return f, nil
}

// stoppedReading is the error of a corpus whose reading was interrupted.
func stoppedReading(path string, cause error) error {
	return fmt.Errorf("reading corpus %s was stopped: run the same command again (%w)", path, cause)
}

// fileInside advises what to name in place of a directory.
func fileInside(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "name a file inside it"
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for _, e := range entries {
		switch ext := strings.ToLower(filepath.Ext(e.Name())); {
		case e.Type().IsRegular() && (ext == ".txt" || ext == ".json" || ext == ".jsonl"):
			return "name a file inside it, such as " + filepath.Join(dir, e.Name())
		}
	}
	return "name a text or JSON file inside it"
}

// survey reads a whole file for what opening it needs to know.
func survey(ctx context.Context, path string) (head []byte, sum string, size int64, delimiter bool, err error) {
	s, err := openSource(ctx, path)
	if err != nil {
		return nil, "", 0, false, err
	}
	defer s.Close()
	// The last bytes of a block stay in front of the next, so that a delimiter across two blocks is seen.
	const overlap = len(Delimiter) - 1
	buf := make([]byte, overlap+firstWindow)
	kept := 0
	for {
		n, err := s.Read(buf[kept : kept+firstWindow])
		if missing := detectWindow - len(head); missing > 0 {
			head = append(head, buf[kept:kept+min(n, missing)]...)
		}
		window := buf[:kept+n]
		delimiter = delimiter || bytes.Contains(window, []byte(Delimiter))
		kept = min(len(window), overlap)
		copy(buf, window[len(window)-kept:])
		if err == io.EOF {
			return head, s.sum(), s.size, delimiter, nil
		}
		if err != nil {
			return nil, "", 0, false, err
		}
	}
}

// source is an open file that hashes what is read from it, and stops when its context ends.
type source struct {
	ctx  context.Context
	f    *os.File
	hash hash.Hash
	size int64
}

func openSource(ctx context.Context, path string) (*source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &source{ctx: ctx, f: f, hash: sha256.New()}, nil
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.f.Read(p)
	s.hash.Write(p[:n])
	s.size += int64(n)
	return n, err
}

func (s *source) Close() error { return s.f.Close() }

func (s *source) sum() string { return hex.EncodeToString(s.hash.Sum(nil)) }

// Info implements [Corpus].
func (f *file) Info() Info { return f.info }

// Stories implements [Corpus].
func (f *file) Stories(ctx context.Context, yield func(story []byte) error) error {
	s, err := openSource(ctx, f.info.Path)
	if err != nil {
		return fmt.Errorf("corpus cannot be read: %w", err)
	}
	defer s.Close()
	if _, err := io.CopyN(io.Discard, s, f.mark); err != nil {
		if cause := ctx.Err(); cause != nil {
			return stoppedReading(f.info.Path, cause)
		}
		return fmt.Errorf("corpus %s cannot be read: %w", f.info.Path, err)
	}
	found := false
	var stopped error
	take := func(story []byte) error {
		if cause := ctx.Err(); cause != nil {
			stopped = stoppedReading(f.info.Path, cause)
			return stopped
		}
		found = true
		stopped = yield(story)
		return stopped
	}
	err = readStories(s, f.info.Kind, f.mark, MaxStory, take)
	switch {
	case errors.Is(stopped, ErrStop):
		return nil
	case stopped != nil:
		return stopped
	case err != nil && ctx.Err() != nil:
		return stoppedReading(f.info.Path, ctx.Err())
	case err != nil:
		return fmt.Errorf("corpus %s: %w", f.info.Path, err)
	case s.sum() != f.info.SHA256:
		return fmt.Errorf("corpus %s changed while it was in use: start again", f.info.Path)
	case !found:
		return fmt.Errorf("corpus %s %w", f.info.Path, ErrNoStories)
	}
	return nil
}

// readStories reads the stories of a stream of a given kind. offset is that of the stream's first byte in its file.
func readStories(r io.Reader, kind Kind, offset int64, limit int, yield func([]byte) error) error {
	switch kind {
	case KindJSON, KindJSONL:
		return records(r, offset, limit, kind == KindJSON, yield)
	case KindDelimited:
		return split(r, offset, limit, atDelimiter, yield)
	case KindText:
		return split(r, offset, limit, atBlankLine, yield)
	}
	return fmt.Errorf("a file cannot be of kind %q", kind)
}
