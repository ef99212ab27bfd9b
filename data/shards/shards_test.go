package shards

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chiplm/chiplm/data"
)

// letters is a tokenizer of one token per byte: id = byte + shift, end-of-text 0.
type letters struct {
	vocab int
	shift int32
}

func (l letters) Encode(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b)+l.shift)
	}
	return dst
}
func (l letters) EOT() int32 { return 0 }
func (l letters) Size() int  { return l.vocab }
func (l letters) Hash() string {
	sum := sha256.Sum256(fmt.Append(nil, l))
	return hex.EncodeToString(sum[:])
}

var (
	small = letters{257, 1}
	large = letters{100_000, 90_000}
)

// make writes the shard of a corpus and opens it.
func build(t testing.TB, corpus data.Corpus, tok Tokenizer) *Shard {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.tokens")
	if err := Write(context.Background(), path, corpus, tok, nil); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestShardHoldsTheCorpus(t *testing.T) {
	corpus := data.Builtin(1, 1500) // more than one batch
	for _, tok := range []letters{small, large, {smallVocab, 1}, {smallVocab + 1, 1}} {
		s := build(t, corpus, tok)
		i, raw := int64(0), 0
		err := corpus.Stories(context.Background(), func(story []byte) error {
			if got, want := s.Story(nil, i), tok.Encode(nil, story); !reflect.DeepEqual(got, want) {
				t.Fatalf("story %d differs", i)
			}
			i++
			raw += len(story)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := Header{corpus.Info().SHA256, tok.Hash(), tok.vocab, 0, int64(raw) + i, i, int64(raw)}
		if got := s.Header(); got != want {
			t.Errorf("header %+v, want %+v", got, want)
		}
		if err := s.Check(corpus.Info().SHA256, tok.Hash()); err != nil {
			t.Error(err)
		}
		for _, sums := range [][2]string{{strings.Repeat("0", 64), tok.Hash()}, {corpus.Info().SHA256, strings.Repeat("0", 64)}} {
			if err := s.Check(sums[0], sums[1]); !errors.Is(err, ErrMismatch) {
				t.Errorf("another corpus or tokenizer: error %v", err)
			}
		}
	}
}

func TestWritingLeavesNothingHalfDone(t *testing.T) {
	corpus := data.Builtin(1, 1500)
	cancelled, cancel := context.WithCancel(context.Background())
	for name, try := range map[string]func(path string) error{
		"a cancelled context": func(path string) error {
			return Write(cancelled, path, corpus, small, func(int64) { cancel() })
		},
		"ids outside the vocabulary": func(path string) error {
			return Write(context.Background(), path, corpus, letters{100, 1}, nil)
		},
		"a corpus that fails": func(path string) error {
			return Write(context.Background(), path, failing{corpus}, small, nil)
		},
		"a hash that is none": func(path string) error {
			return Write(context.Background(), path, corpus, unhashed{small}, nil)
		},
	} {
		dir := t.TempDir()
		err := try(filepath.Join(dir, "x.tokens"))
		if err == nil || !strings.Contains(err.Error(), "x.tokens") {
			t.Errorf("%s: error %v", name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s leaves %s behind", name, left[0].Name())
		}
	}
}

type failing struct{ data.Corpus }

func (f failing) Stories(ctx context.Context, yield func([]byte) error) error {
	n := 0
	err := f.Corpus.Stories(ctx, func(story []byte) error {
		if n++; n == 1400 {
			return errors.New("a bad sector")
		}
		return yield(story)
	})
	return err
}

type unhashed struct{ letters }

func (unhashed) Hash() string { return "none" }

func TestBuildReusesAndRepairs(t *testing.T) {
	dir := t.TempDir()
	corpus := data.Builtin(1, 50)
	made := 0
	get := func(c data.Corpus, tok Tokenizer) *Shard {
		t.Helper()
		s, err := Build(context.Background(), c, tok, dir, func(int64) { made++ })
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		return s
	}
	path := get(corpus, small).Path()
	if made != 1 {
		t.Fatalf("made %d times", made)
	}
	if get(corpus, small); made != 1 {
		t.Error("a shard that is there is made again")
	}
	if got := get(corpus, large).Path(); got == path || made != 2 {
		t.Error("two tokenizers share a shard")
	}
	if got := get(data.Split(corpus, false), small).Path(); got == path || made != 3 {
		t.Error("a corpus and a part of it share a shard")
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", "something else", string(whole[:len(whole)-1]), string(whole) + "x"} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		made = 0
		get(corpus, small)
		if again, _ := os.ReadFile(path); made != 1 || !bytes.Equal(again, whole) {
			t.Errorf("a damaged shard of %d bytes is not made again", len(content))
		}
	}
	// A shard of another corpus under this name is refused, not used.
	other := filepath.Join(t.TempDir(), "other")
	if err := Write(context.Background(), other, data.Builtin(2, 50), small, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(context.Background(), corpus, small, dir, nil); !errors.Is(err, ErrMismatch) {
		t.Errorf("a foreign shard: error %v", err)
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv(CacheVariable, "/from/env")
	if got, err := CacheDir("/given"); got != "/given" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := CacheDir(""); got != "/from/env" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv(CacheVariable, "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := CacheDir(""); err == nil && !strings.HasSuffix(got, "chiplm") {
		t.Errorf("%q", got)
	}
}

// TestCacheFolderThatCannotBeUsed: the error says what the folder is for, what names it, and what to do; a file that stands where
// a folder must be is enough to make one, for root too.
func TestCacheFolderThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const todo = "set CHIPLM_CACHE to a folder that can be written"
	for dir, cause := range map[string]string{file: "not a directory", file + "/": "not a directory", filepath.Join(file, "sub"): "not a directory",
		"/proc/nope": "no such file or directory"} {
		t.Setenv(CacheVariable, dir)
		_, err := Build(context.Background(), data.Builtin(1, 10), small, "", nil)
		if err == nil || !strings.Contains(err.Error(), "kept in the folder "+dir+" (which CHIPLM_CACHE names), which cannot be used: ") ||
			!strings.Contains(err.Error(), cause) || !strings.HasSuffix(err.Error(), todo) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	t.Setenv(CacheVariable, "")
	t.Setenv("HOME", file)
	t.Setenv("XDG_CACHE_HOME", file)
	if _, err := Build(context.Background(), data.Builtin(1, 10), small, "", nil); err == nil ||
		!strings.Contains(err.Error(), "(the default, as CHIPLM_CACHE is not set)") || !strings.HasSuffix(err.Error(), todo) {
		t.Error(err)
	}
	// What the caller named is not the variable's, and what is no fault of the folder is told as it is.
	if _, err := Build(context.Background(), data.Builtin(1, 10), small, file, nil); err == nil || strings.Contains(err.Error(), CacheVariable) {
		t.Error(err)
	}
	full := fmt.Errorf("writing: %w", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if err := unusable("/cache", "", full); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room there, or set CHIPLM_CACHE") {
		t.Error(err)
	}
	gone := fmt.Errorf("the corpus: %w", &os.PathError{Op: "open", Path: "/elsewhere/x", Err: os.ErrNotExist})
	if err := unusable("/cache", "", gone); err != gone {
		t.Error(err)
	}
}

// Any change of a single byte, and any cut, is refused, each without a crash.
func TestDamageIsRefused(t *testing.T) {
	good, err := os.ReadFile(build(t, data.Builtin(1, 2), small).Path())
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if err := new(Shard).load(bad); err == nil {
			t.Fatalf("a change of byte %d is accepted", i)
		}
	}
	for n := range good {
		err := new(Shard).load(good[:n])
		if want := ErrDamaged; n < len(magic) && !errors.Is(err, ErrNotShard) || n >= len(magic) && !errors.Is(err, want) {
			t.Fatalf("cut to %d bytes: error %v", n, err)
		}
	}
	path := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(path, good[:len(good)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotShard) {
		t.Errorf("a folder: error %v", err)
	}
}

// seal makes the checksums of a shard's bytes right.
func seal(b []byte) {
	if len(b) >= headerBytes {
		binary.LittleEndian.PutUint32(b[152:], crc32.Checksum(b[headerBytes:], castagnoli))
		binary.LittleEndian.PutUint32(b[156:], crc32.Checksum(b[:156], castagnoli))
	}
}

// A hostile file has right checksums and wrong content: it is refused, or all reading of it works.
func FuzzHostile(f *testing.F) {
	good, err := os.ReadFile(build(f, data.Builtin(1, 2), small).Path())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, uint16(96), uint64(1<<40))
	f.Add(good, uint16(104), uint64(0))
	f.Add(good, uint16(104), uint64(1<<63))
	f.Add(good, uint16(len(good)-8), uint64(1))
	f.Add(good, uint16(len(good)-16), uint64(1<<63))
	f.Add(good, uint16(20), uint64(5))
	f.Add(good, uint16(200), uint64(1<<64-1))
	f.Fuzz(func(t *testing.T, file []byte, at uint16, value uint64) {
		file = bytes.Clone(file)
		if int(at)+8 <= len(file) {
			binary.LittleEndian.PutUint64(file[at:], value)
		}
		seal(file)
		var s Shard
		if s.load(file) != nil {
			return
		}
		for i := range min(s.header.Stories, 100) {
			s.Story(nil, i)
		}
		q, err := New(&s, 7, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		ids, targets := make([]int32, 7), make([]int32, 7)
		for n := range int64(50) {
			q.Sequence(n, ids, targets)
		}
	})
}

func TestHostileContent(t *testing.T) {
	good, err := os.ReadFile(build(t, data.Builtin(1, 3), small).Path())
	if err != nil {
		t.Fatal(err)
	}
	n := len(good)
	for name, change := range map[string]func(b []byte){
		"id outside the vocabulary": func(b []byte) { binary.LittleEndian.PutUint16(b[headerBytes:], 257) },
		"no end-of-text":            func(b []byte) { binary.LittleEndian.PutUint64(b[n-24:], 5) },
		"stories out of order":      func(b []byte) { copy(b[n-16:n-8], b[n-24:n-16]) },
		"end outside":               func(b []byte) { binary.LittleEndian.PutUint64(b[n-8:], 1<<62) },
		"a story less":              func(b []byte) { b[104]-- },
		"unknown flag":              func(b []byte) { b[28] = 1 },
		"reserved":                  func(b []byte) { b[130] = 1 },
		"wrong width":               func(b []byte) { b[16] = 4 },
		"huge":                      func(b []byte) { binary.LittleEndian.PutUint64(b[96:], 1<<62) },
	} {
		bad := bytes.Clone(good)
		change(bad)
		seal(bad)
		if err := new(Shard).load(bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	bad := bytes.Clone(good)
	bad[8] = 2
	if err := new(Shard).load(bad); !errors.Is(err, ErrVersion) {
		t.Errorf("version: error %v", err)
	}
}

func TestReadersAgreeConcurrently(t *testing.T) {
	s := build(t, data.Builtin(1, 40), small)
	shared, err := New(s, 64, 5, false)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			own, _ := New(s, 64, 5, false)
			a, b, c, d := make([]int32, 64), make([]int32, 64), make([]int32, 64), make([]int32, 64)
			for i := range int64(2000) {
				n := i * 7919 % 2000
				own.Sequence(n, a, b)
				shared.Sequence(n, c, d)
				if !reflect.DeepEqual(a, c) || !reflect.DeepEqual(b, d) {
					t.Errorf("sequence %d differs", n)
					return
				}
			}
		})
	}
	wg.Wait()
}
