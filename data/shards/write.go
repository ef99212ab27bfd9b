package shards

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/regular"
)

// Tokenizer is what a shard needs of a tokenizer; *bpe.Tokenizer is one. Encode must be safe for concurrent use.
type Tokenizer interface {
	// Encode appends the ids of text to dst, without special tokens.
	Encode(dst []int32, text []byte) []int32
	// EOT is the id of the end-of-text token.
	EOT() int32
	// Size is the number of entries of the vocabulary.
	Size() int
	// Hash is the SHA-256 of the tokenizer as 64 hexadecimal digits.
	Hash() string
}

// Progress is told how many bytes of stories have been tokenised. The corpus's size in bytes, delimiters included, is an
// upper bound for it. It is called from one goroutine at a time.
type Progress func(storyBytes int64)

// placeError occurs when a file cannot even be begun where it is to be.
type placeError struct{ error }

func (e *placeError) Unwrap() error { return e.error }

// Write tokenises a corpus into a shard at path: into a temporary file in the same folder, which is synced and then
// renamed, so that a file under this name is always whole. It uses several cores. Memory is bounded by a few megabytes
// a core, by the longest story, and by 8 bytes a story. progress may be nil.
func Write(ctx context.Context, path string, corpus data.Corpus, tok Tokenizer, progress Progress) (err error) {
	defer func() {
		if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
			err = fmt.Errorf("writing token shard %s was stopped, and nothing was written: run the same command again (%w)",
				path, cause)
		} else if err != nil {
			err = fmt.Errorf("writing token shard %s: %w", path, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return &placeError{err}
	}
	f, err := regular.Create(path)
	if err != nil {
		return &placeError{err}
	}
	defer f.Cleanup()
	info := corpus.Info()
	w := &writer{
		header: Header{CorpusSHA256: info.SHA256, TokenizerSHA256: tok.Hash(), VocabSize: tok.Size(), EOT: tok.EOT()},
		crc:    crc32.New(castagnoli),
	}
	if _, err := w.header.encode(0); err != nil {
		return err
	}
	if _, err := f.Seek(headerBytes, io.SeekStart); err != nil {
		return err
	}
	w.out = bufio.NewWriterSize(io.MultiWriter(f, w.crc), 1<<20)
	if err := tokenise(ctx, corpus, tok, w, progress); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	header, err := w.header.encode(w.crc.Sum32())
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(header, 0); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in a folder last. Some systems cannot sync a folder, and then there is nothing to do.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}

// writer puts stories into the file.
type writer struct {
	header Header
	out    *bufio.Writer
	crc    hash.Hash32
	ends   []uint64
	buf    []byte
}

// story writes the tokens of one story and the end-of-text.
func (w *writer) story(ids []int32, rawBytes int) error {
	w.buf = w.buf[:0]
	for i := range len(ids) + 1 {
		id := w.header.EOT
		if i < len(ids) {
			id = ids[i]
		}
		if id < 0 || int(id) >= w.header.VocabSize {
			return fmt.Errorf("the tokenizer gave id %d, and its vocabulary has %d entries", id, w.header.VocabSize)
		}
		if w.header.width() == 2 {
			w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(id))
		} else {
			w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(id))
		}
	}
	w.header.Tokens += int64(len(ids)) + 1
	w.header.Stories++
	w.header.RawBytes += int64(rawBytes)
	w.ends = append(w.ends, uint64(w.header.Tokens))
	_, err := w.out.Write(w.buf)
	return err
}

// finish writes what follows the tokens.
func (w *writer) finish() error {
	padding := w.header.offsetsAt() - headerBytes - w.header.Tokens*w.header.width()
	if _, err := w.out.Write(make([]byte, padding)); err != nil {
		return err
	}
	for _, end := range w.ends {
		w.buf = binary.LittleEndian.AppendUint64(w.buf[:0], end)
		if _, err := w.out.Write(w.buf); err != nil {
			return err
		}
	}
	return w.out.Flush()
}

// batchBytes is how much text a batch of stories has before it is encoded.
const batchBytes = 1 << 20

// batch is a run of stories that one goroutine encodes. Its slices grow together: story i ends at text[textEnds[i]] and
// ids[idEnds[i]].
type batch struct {
	text     []byte
	textEnds []int
	ids      []int32
	idEnds   []int
	done     chan struct{}
}

func (b *batch) encode(tok Tokenizer) {
	begin := 0
	for _, end := range b.textEnds {
		b.ids = tok.Encode(b.ids, b.text[begin:end])
		b.idEnds = append(b.idEnds, len(b.ids))
		begin = end
	}
	close(b.done)
}

// tokenise encodes the stories of a corpus on all cores and writes them in order.
func tokenise(ctx context.Context, corpus data.Corpus, tok Tokenizer, w *writer, progress Progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A batch is encoded once it is in the queue, so the queue's length is what bounds work and memory.
	queue := make(chan *batch, min(runtime.GOMAXPROCS(0), 16))
	written := make(chan struct{})
	go func() {
		defer close(written)
		for b := range queue {
			<-b.done
			if ctx.Err() != nil {
				continue // drain
			}
			text, id := 0, 0
			for i := range b.textEnds {
				if err := w.story(b.ids[id:b.idEnds[i]], b.textEnds[i]-text); err != nil {
					cancel(err)
					break
				}
				text, id = b.textEnds[i], b.idEnds[i]
			}
			if progress != nil && ctx.Err() == nil {
				progress(w.header.RawBytes)
			}
		}
	}()
	b := &batch{done: make(chan struct{})}
	send := func() {
		if len(b.textEnds) == 0 {
			return
		}
		queue <- b
		go b.encode(tok)
		b = &batch{done: make(chan struct{})}
	}
	err := corpus.Stories(ctx, func(story []byte) error {
		b.text = append(b.text, story...)
		b.textEnds = append(b.textEnds, len(b.text))
		if len(b.text) >= batchBytes {
			send()
		}
		return nil
	})
	if err == nil {
		send()
	}
	close(queue)
	<-written
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
