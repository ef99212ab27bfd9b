package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chiplm/chiplm/data/bpe"
)

// The C encoder against that of package bpe, which is held to other programs' there.

// trainTokenizer trains on a text, one story a line.
func trainTokenizer(tb testing.TB, text []byte, size int) *bpe.Tokenizer {
	tb.Helper()
	tok, err := bpe.Train(context.Background(), func(yield func([]byte) error) error {
		for line := range bytes.Lines(text) {
			if err := yield(line); err != nil {
				return err
			}
		}
		return nil
	}, size)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// encoderImage is an image with this tokenizer.
func encoderImage(tb testing.TB, tok *bpe.Tokenizer) *Image {
	tb.Helper()
	m := newTestModel(tb, shape(tok.Size(), 2, 1, 1, 1, 1, 0, 0), 1)
	m.tokn = tok.AppendImage(nil)
	return openTest(tb, m.image(tb, []int32{0}).bytes)
}

const rhyme = "Jack and Jill went up the hill, and they'd fetch a pail; Jack's fallen down!\nI'll say we've 12 or 345 more  tails\t\n"

// languages is text of several scripts, for merges across bytes of one character and across characters.
const languages = "Привет, мир! Приветствие миру. 你好世界，你好。안녕하세요 안녕 नमस्ते दुनिया नमस्ते مرحبا بالعالم café naïve Ünïcödé ①② Ⅷ ½ 🙂🙃🙂 \u3000\u2003x\n"

// tokenizers are small ones that are unlike each other.
func tokenizers(tb testing.TB) map[string]*bpe.Tokenizer {
	tb.Helper()
	mixed := []byte(rhyme + languages + rhyme + languages)
	out := map[string]*bpe.Tokenizer{
		"bytes alone": trainTokenizer(tb, mixed, bpe.MinSize),
		"English":     trainTokenizer(tb, []byte(rhyme+rhyme), 300),
		"mixed":       trainTokenizer(tb, mixed, 440),
		"runs":        trainTokenizer(tb, []byte(strings.Repeat(strings.Repeat("a", 100)+strings.Repeat("ab", 37)+strings.Repeat(" ", 40)+"\n", 2)), 280),
	}
	out["shuffled"] = shuffled(tb, out["mixed"], 1)
	out["two ways to a word"] = twoWays(tb)
	return out
}

// shuffled has other ranks: merges stand before those that make their parts.
func shuffled(tb testing.TB, tok *bpe.Tokenizer, seed uint64) *bpe.Tokenizer {
	tb.Helper()
	section := tok.AppendImage(nil)
	merges := section[20+4*(tok.Size()+1):]
	rand.New(rand.NewPCG(seed, 3)).Shuffle(tok.Merges(), func(i, j int) {
		var kept [12]byte
		copy(kept[:], merges[12*i:])
		copy(merges[12*i:12*i+12], merges[12*j:])
		copy(merges[12*j:], kept[:])
	})
	return fromSection(tb, section)
}

func fromSection(tb testing.TB, section []byte) *bpe.Tokenizer {
	tb.Helper()
	tok, err := bpe.FromImage(section)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// twoWays has entries that two merges make, one before and one after a merge of the entry.
func twoWays(tb testing.TB) *bpe.Tokenizer {
	tb.Helper()
	id := func(s string) uint32 { return uint32(s[0]) + 1 }
	const ab, bc, abc, abcd = 257, 258, 259, 260
	section := le.AppendUint32(nil, 1)
	for _, v := range []uint32{261, 5, 0, 256 + 2 + 2 + 3 + 4, 0} {
		section = le.AppendUint32(section, v)
	}
	for i := range uint32(257) {
		section = le.AppendUint32(section, i)
	}
	for _, end := range []uint32{258, 260, 263, 267} {
		section = le.AppendUint32(section, end)
	}
	for _, merge := range [][3]uint32{{ab, id("c"), abc}, {id("b"), id("c"), bc}, {abc, id("d"), abcd}, {id("a"), bc, abc}, {id("a"), id("b"), ab}} {
		for _, v := range merge {
			section = le.AppendUint32(section, v)
		}
	}
	for b := range 256 {
		section = append(section, byte(b))
	}
	return fromSection(tb, append(section, "abbcabcabcd"...))
}

// compareEncoders encodes a text both ways.
func compareEncoders(tb testing.TB, im *Image, tok *bpe.Tokenizer, text []byte) {
	tb.Helper()
	got, err := im.Encode(text)
	if err != nil {
		tb.Fatalf("%.200q: %v", text, err)
	}
	if want := tok.Encode(nil, text); !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		at := len(tok.Decode(nil, want[:i]))
		tb.Fatalf("other ids from %q on, byte %d of %d: %v, want %v", text[at:min(at+40, len(text))], at, len(text), got[i:min(i+8, len(got))],
			want[i:min(i+8, len(want))])
	}
}

func TestEncodeEqualsPackageBPE(t *testing.T) {
	for name, tok := range tokenizers(t) {
		t.Run(name, func(t *testing.T) {
			im := encoderImage(t, tok)
			for _, text := range []string{"", " ", "'", "a", "\n", "  ", rhyme, languages, "<|endoftext|>", "\x00\xff\x00", "abcd abcdabcd", "cab bcabc"} {
				compareEncoders(t, im, tok, []byte(text))
			}
			rng := rand.New(rand.NewPCG(1, uint64(len(name))))
			for range 300 {
				compareEncoders(t, im, tok, randomText(rng, rng.IntN(300)))
			}
			for _, n := range []int{1000, 65536} {
				for _, unit := range []string{"a", "ab", "aab", " ", "\t", "  \n", "é", "'s", "你", "\xff", "1", " 1", "!"} {
					compareEncoders(t, im, tok, []byte(strings.Repeat(unit, n)[:n]))
				}
			}
			text := make([]byte, 1<<17) // one word without repetition
			for i := range text {
				text[i] = "abcdehilnoty"[rng.IntN(12)]
			}
			compareEncoders(t, im, tok, text)
		})
	}
}

// randomText is n pieces of everything that is told apart: words and their parts, white space, contractions, characters of
// all planes, ends of the ranges of UTF-8, and bytes that are no characters.
func randomText(rng *rand.Rand, n int) []byte {
	pieces := []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'", "'r", "'v", "'l", "'S", " ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2003",
		"\u0085", "the", " hill", "Jack", "12", "½", "Ⅷ", "!", "...", "你好", "при", "🙂", "\u0301", "\u200d", "\ufffd", "\ufeff", "\u07ff", "\u0800", "\uffff",
		"\U00010000", "\U0010ffff", "\x80", "\xc0\xa0", "\xc1\xa1", "\xc3", "\xe0\x80\xa0", "\xe0\x9f\xbf", "\xe3\x80", "\xed\xa0\x80", "\xf0\x80\x80\xa0", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x99",
		"\xf4\x90\x80\x80", "\xf5", "\xff"}
	var text []byte
	for range n {
		switch rng.IntN(8) {
		case 0:
			text = append(text, byte(rng.IntN(256)))
		case 1:
			text = utf8.AppendRune(text, rng.Int32N(utf8.MaxRune+1))
		case 2:
			text = utf8.AppendRune(text, rng.Int32N(0x3000))
		case 3:
			text = append(text, byte('a'+rng.IntN(26)))
		default:
			text = append(text, pieces[rng.IntN(len(pieces))]...)
		}
	}
	return text
}

// classTokenizer has merges that show how a text was split: of a space, a letter and a number with the first byte of every
// character, and of the last bytes with them.
func classTokenizer(tb testing.TB) *bpe.Tokenizer {
	tb.Helper()
	entries := []string{""}
	ids := map[string]uint32{"": 0}
	add := func(s string) {
		ids[s] = uint32(len(entries))
		entries = append(entries, s)
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	var merges []uint32
	join := func(a, b string) {
		if _, ok := ids[a+b]; !ok {
			add(a + b)
			merges = append(merges, ids[a], ids[b], ids[a+b])
		}
	}
	for b := range 256 {
		c := string([]byte{byte(b)})
		for _, probe := range []string{"x", "1", "!", " "} {
			join(probe, c)
			join(c, probe)
		}
	}
	section := le.AppendUint32(nil, 1)
	text := strings.Join(entries, "")
	for _, v := range []int{len(entries), len(merges) / 3, 0, len(text), 0} {
		section = le.AppendUint32(section, uint32(v))
	}
	end := 0
	for _, e := range entries {
		end += len(e)
		section = le.AppendUint32(section, uint32(end))
	}
	for _, v := range merges {
		section = le.AppendUint32(section, v)
	}
	return fromSection(tb, append(section, text...))
}

// TestEncodeEveryCharacter puts every code point, and what would encode a surrogate, behind a letter, a number and a sign:
// to which it is joined tells its class.
func TestEncodeEveryCharacter(t *testing.T) {
	tok := classTokenizer(t)
	im := encoderImage(t, tok)
	const block = 1 << 12
	for first := rune(0); first <= utf8.MaxRune; first += block {
		var text []byte
		for r := first; r < first+block; r++ {
			c := utf8.AppendRune(nil, r)
			if r >= 0xd800 && r < 0xe000 {
				c = []byte{0xed, byte(0x80 | r>>6&0x3f), byte(0x80 | r&0x3f)}
			}
			for _, probe := range []string{"x", "1", "!"} {
				if r < 0x40000 || probe == "!" { // beyond, all are alike
					text = append(append(text, probe...), c...)
				}
			}
			text = append(text, '\n')
		}
		compareEncoders(t, im, tok, text)
	}
}

// TestEncodeEveryPairOfBytes does the same with pairs and triples of bytes, most of which are no characters.
func TestEncodeEveryPairOfBytes(t *testing.T) {
	tok := classTokenizer(t)
	im := encoderImage(t, tok)
	for a := range 256 {
		var text []byte
		for b := range 256 {
			for _, rest := range []string{"", "\xa0", "\xbf\xbf", "\x80\xa0"} {
				for _, probe := range []string{"x", " \n"} {
					text = append(append(append(text, probe...), byte(a), byte(b)), rest+probe...)
				}
			}
		}
		compareEncoders(t, im, tok, text)
	}
}

// TestEncodePairsAtTheBordersOfClasses joins any two characters from the ends of runs of one class.
func TestEncodePairsAtTheBordersOfClasses(t *testing.T) {
	tok := classTokenizer(t)
	im := encoderImage(t, tok)
	var borders []rune
	for r := rune(1); r <= utf8.MaxRune; r++ {
		if bpe.ClassOf(r) != bpe.ClassOf(r-1) {
			borders = append(borders, r-1, r)
		}
	}
	if len(borders) < 3000 {
		t.Fatalf("%d characters at borders", len(borders))
	}
	rng := rand.New(rand.NewPCG(4, 4))
	var text []byte
	for _, a := range borders {
		for range 40 {
			text = utf8.AppendRune(utf8.AppendRune(text, a), borders[rng.IntN(len(borders))])
		}
		if len(text) > 1<<16 {
			compareEncoders(t, im, tok, text)
			text = text[:0]
		}
	}
	compareEncoders(t, im, tok, text)
}

// corpusFile is a file of the real corpus, or nil when it is not on this machine.
func corpusFile(tb testing.TB, name string) []byte {
	tb.Helper()
	dir := cmp.Or(os.Getenv("CHIPLM_CORPUS"), filepath.Join("..", "..", "shared", "corpus"))
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		tb.Fatal(err)
	}
	return b
}

func TestEncodeTinyStories(t *testing.T) {
	train, valid := corpusFile(t, "tinystories-train.txt"), corpusFile(t, "tinystories-valid.txt")
	if train == nil || valid == nil {
		t.Skip("needs tinystories-train.txt and tinystories-valid.txt; CHIPLM_CORPUS names their folder")
	}
	train = train[:min(len(train), 2<<20)]
	valid = valid[:min(len(valid), 2<<20)]
	tok := trainTokenizer(t, train, 4096)
	compareEncoders(t, encoderImage(t, tok), tok, valid)
	shuffled := shuffled(t, tok, 2)
	compareEncoders(t, encoderImage(t, shuffled), shuffled, valid[:min(len(valid), 1<<19)])
}

// TestEncodeRefusesTokenizersThatPackageBPERefuses changes a tokenizer in ways that the checks of an image let pass.
func TestEncodeRefusesTokenizersThatPackageBPERefuses(t *testing.T) {
	section := twoWays(t).AppendImage(nil)
	merges, text := 20+4*262, 20+4*262+12*5
	for name, change := range map[string]struct {
		change func(b []byte)
		text   string
	}{
		"a byte twice":          {func(b []byte) { b[text+'q'] = 'p' }, "two entries of one byte"},
		"a result of other":     {func(b []byte) { b[text+257] = 'x' }, "result of merge"},
		"a shorter result":      {func(b []byte) { le.PutUint32(b[merges+8:], 257) }, "result of merge"},
		"a merge of nothing":    {func(b []byte) { le.PutUint32(b[merges:], 0); le.PutUint32(b[merges+8:], 'c'+1) }, "result of merge"},
		"nothing after a merge": {func(b []byte) { le.PutUint32(b[merges+4:], 0); le.PutUint32(b[merges+8:], 257) }, "result of merge"},
		"a merge twice":         {func(b []byte) { copy(b[merges+12:merges+24], b[merges:merges+12]) }, "two merges of one pair"},
	} {
		t.Run(name, func(t *testing.T) {
			b := slices.Clone(section)
			change.change(b)
			if _, err := bpe.FromImage(b); err == nil {
				t.Fatal("package bpe takes it")
			}
			m := newTestModel(t, shape(261, 2, 1, 1, 1, 1, 0, 0), 1)
			m.tokn = b
			im := openTest(t, m.image(t, []int32{0}).bytes)
			for range 2 {
				if _, err := im.Encode([]byte("abc")); !errors.Is(err, ErrTokenizer) || !strings.Contains(err.Error(), change.text) {
					t.Errorf("%v, want one about %q", err, change.text)
				}
			}
		})
	}
}

func TestEncodeOfAnImageThatKnowsTooFewBytes(t *testing.T) {
	im := openTest(t, smallModel(t).image(t, []int32{1}).bytes)
	if _, err := im.Encode(nil); !errors.Is(err, ErrTokenizer) || !strings.Contains(err.Error(), "no entry for byte 0") {
		t.Error(err)
	}
	im = encoderImage(t, twoWays(t))
	if err := im.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := im.Encode([]byte("abc")); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func FuzzEncode(f *testing.F) {
	type pair struct {
		im  *Image
		tok *bpe.Tokenizer
	}
	var pairs []pair
	for _, name := range []string{"mixed", "shuffled", "runs", "two ways to a word"} {
		tok := tokenizers(f)[name]
		pairs = append(pairs, pair{encoderImage(f, tok), tok})
	}
	for i, text := range []string{rhyme, languages, "aaaaaaaaaaaab  \u3000'll\xe3\x80", "abcdabcabc"} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		p := pairs[int(which)%len(pairs)]
		compareEncoders(t, p.im, p.tok, text)
	})
}
