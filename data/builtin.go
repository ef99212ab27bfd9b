package data

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/chiplm/chiplm/data/splitmix"
)

const builtinName = "builtin"

// The generator when "builtin" alone is asked for, and the most stories it may be asked for: without duplicates is
// promised, and that takes 8 bytes of memory a story and more draws the more there are.
const (
	DefaultSeed    = 1
	DefaultStories = 4000
	MaxBuiltin     = 1_000_000
)

// builtin is the generator as a corpus.
type builtin struct {
	seed    uint64
	stories int
	measure func() (sum string, size int64)
}

// Builtin is the built-in generator: simple stories for children from a grammar of the project's own, no two alike.
// The stories of a seed are the same on every platform, and a longer corpus starts with the stories of a shorter one.
// stories is brought into [1, MaxBuiltin].
func Builtin(seed uint64, stories int) Corpus {
	b := &builtin{seed: seed, stories: min(max(stories, 1), MaxBuiltin)}
	b.measure = sync.OnceValues(func() (string, int64) {
		h := sha256.New()
		n, err := WriteDelimited(context.Background(), h, b)
		if err != nil {
			panic("data: hashing the built-in stories: " + err.Error()) // nothing in it can fail
		}
		return hex.EncodeToString(h.Sum(nil)), n
	})
	return b
}

// openBuiltin opens "builtin", "builtin:seed" or "builtin:seed:stories", with a part behind it.
func openBuiltin(path string) (Corpus, error) {
	for _, name := range []string{partTrain, partHeldOut} {
		if whole, ok := strings.CutSuffix(path, name); ok {
			c, err := openBuiltin(whole)
			if err != nil {
				return nil, err
			}
			return Split(c, name == partHeldOut), nil
		}
	}
	seed, stories := uint64(DefaultSeed), DefaultStories
	fields := strings.Split(path, ":")
	var err error
	if len(fields) > 1 {
		if seed, err = strconv.ParseUint(fields[1], 10, 64); err != nil {
			return nil, fmt.Errorf("corpus %s: the seed %q is no whole number: write builtin:seed:stories, such as "+
				"builtin:1:2000", path, fields[1])
		}
	}
	if len(fields) > 2 {
		stories, err = strconv.Atoi(fields[2])
		if err != nil || stories < 1 || stories > MaxBuiltin {
			return nil, fmt.Errorf("corpus %s: the number of stories %q is not a whole number from 1 to %d: write "+
				"builtin:seed:stories, such as builtin:1:2000", path, fields[2], MaxBuiltin)
		}
	}
	if len(fields) > 3 {
		return nil, fmt.Errorf("corpus %s: %q is too much: write builtin:seed:stories, such as builtin:1:2000", path,
			strings.Join(fields[3:], ":"))
	}
	return Builtin(seed, stories), nil
}

// Info implements [Corpus]. The first call generates all stories, to take their hash.
func (b *builtin) Info() Info {
	path := fmt.Sprintf("%s:%d:%d", builtinName, b.seed, b.stories)
	sum, size := b.measure()
	return Info{Path: path, Name: path, Kind: KindBuiltin, SHA256: sum, Bytes: size}
}

// Stories implements [Corpus].
func (b *builtin) Stories(ctx context.Context, yield func(story []byte) error) error {
	t := &teller{random: splitmix.New(b.seed, 0), words: map[string]string{}}
	told := make(map[uint64]struct{}, b.stories)
	var buf []byte
	for len(told) < b.stories {
		if err := ctx.Err(); err != nil {
			return stoppedReading(fmt.Sprintf("%s:%d:%d", builtinName, b.seed, b.stories), err)
		}
		buf = append(buf[:0], t.tell()...)
		h := fnv.New64a()
		h.Write(buf)
		if _, twice := told[h.Sum64()]; twice {
			continue
		}
		told[h.Sum64()] = struct{}{}
		if err := yield(buf); errors.Is(err, ErrStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// WriteDelimited writes the stories of a corpus as delimited text, the form of the official TinyStories files: each
// story followed by a line that holds only <|endoftext|>. It gives the number of bytes written. A story that holds the
// delimiter cannot be written so and is an error.
func WriteDelimited(ctx context.Context, w io.Writer, c Corpus) (int64, error) {
	out := bufio.NewWriterSize(w, firstWindow)
	var n int64
	err := c.Stories(ctx, func(story []byte) error {
		if strings.Contains(string(story), Delimiter) {
			return fmt.Errorf("a story holds %s, which divides stories in such a file", Delimiter)
		}
		for _, part := range []string{string(story), "\n" + Delimiter + "\n"} {
			m, err := out.WriteString(part)
			n += int64(m)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = out.Flush()
	}
	return n, err
}
