package shards

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/chiplm/chiplm/data"
)

// listed is a corpus in memory.
type listed []string

func (l listed) Stories(_ context.Context, yield func([]byte) error) error {
	for _, s := range l {
		if err := yield([]byte(s)); err != nil {
			return err
		}
	}
	return nil
}

func (l listed) Info() data.Info {
	return data.Info{Path: "listed", SHA256: letters{len(l), 0}.Hash()}
}

// stream reads the targets of the first tokens of the endless stream, and checks that ids are the targets one earlier.
func stream(t *testing.T, s *Sequences, tokens int) []int32 {
	t.Helper()
	ids, targets := make([]int32, s.context), make([]int32, s.context)
	var out []int32
	last := s.shard.header.EOT
	for n := int64(0); len(out) < tokens; n++ {
		s.Sequence(n, ids, targets)
		if ids[0] != last || !slices.Equal(ids[1:], targets[:len(targets)-1]) {
			t.Fatalf("sequence %d: ids %v for targets %v after %d", n, ids, targets, last)
		}
		last = targets[len(targets)-1]
		out = append(out, targets...)
	}
	return out[:tokens]
}

// Every epoch holds each story once, whole and followed by end-of-text, for any lengths of stories and contexts.
func TestEveryTokenOncePerEpoch(t *testing.T) {
	for _, tok := range []letters{small, large} {
		for _, corpus := range []listed{
			{"a"},
			{"a", "bc", "def"},
			{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "a much longer story than all the others"},
		} {
			s := build(t, corpus, tok)
			total := int(s.header.Tokens)
			for _, length := range []int{1, 2, 3, 7, 16, total - 1, total, total + 1, 3*total + 2} {
				if length < 1 {
					continue
				}
				t.Run(fmt.Sprintf("%d stories, %d tokens, context %d", len(corpus), total, length), func(t *testing.T) {
					seq, err := New(s, length, 11, false)
					if err != nil {
						t.Fatal(err)
					}
					const epochs = 5
					all := stream(t, seq, epochs*total)
					for e := range epochs {
						var got []string
						for part := range bytes.SplitSeq(decode1(all[e*total:(e+1)*total], tok), []byte{0}) {
							got = append(got, string(part))
						}
						if got[len(got)-1] != "" {
							t.Fatalf("epoch %d does not end with end-of-text", e)
						}
						got = got[:len(got)-1]
						slices.Sort(got)
						want := slices.Clone(corpus)
						slices.Sort(want)
						if !slices.Equal(got, want) {
							t.Fatalf("epoch %d holds %q", e, got)
						}
					}
				})
			}
		}
	}
}

// decode1 is the text of ids, with a zero byte for end-of-text.
func decode1(ids []int32, tok letters) []byte {
	var out []byte
	for _, id := range ids {
		if id == 0 {
			out = append(out, 0)
		} else {
			out = append(out, byte(id-tok.shift))
		}
	}
	return out
}

func TestSequencesArePure(t *testing.T) {
	s := build(t, data.Builtin(1, 60), small)
	run := func(seed uint64, length int, order []int64) [][]int32 {
		q, err := New(s, length, seed, false)
		if err != nil {
			t.Fatal(err)
		}
		out := make([][]int32, len(order))
		for _, n := range order {
			ids, targets := make([]int32, length), make([]int32, length)
			q.Sequence(n, ids, targets)
			out[n] = append(ids, targets...)
		}
		return out
	}
	const count = 3000 // several epochs
	forward, backward := make([]int64, count), make([]int64, count)
	for i := range forward {
		forward[i], backward[i] = int64(i), int64(count-1-i)
	}
	want := run(1, 50, forward)
	if !reflect.DeepEqual(run(1, 50, backward), want) {
		t.Error("the order of asking changes the sequences")
	}
	if reflect.DeepEqual(run(2, 50, forward), want) {
		t.Error("two seeds give the same sequences")
	}
	// A run that stops and starts again goes on with the same sequences.
	resumed, err := New(s, 50, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	ids, targets := make([]int32, 50), make([]int32, 50)
	for n := int64(1234); n < count; n++ {
		resumed.Sequence(n, ids, targets)
		if !slices.Equal(append(slices.Clone(ids), targets...), want[n]) {
			t.Fatalf("sequence %d differs after a resume", n)
		}
	}
	// Epochs differ in order.
	per := int(s.header.Tokens)
	q, _ := New(s, 50, 1, false)
	all := stream(t, q, 2*per)
	if slices.Equal(all[:per], all[per:]) {
		t.Error("the second epoch has the order of the first")
	}
}

// The shuffle of a seed never changes: a run resumed by a later version must see the same sequences.
func TestShuffleIsPinned(t *testing.T) {
	s := build(t, listed{"a", "b", "c", "d", "e", "f", "g", "h"}, small)
	q, err := New(s, 16, 42, false)
	if err != nil {
		t.Fatal(err)
	}
	got := string(bytes.ReplaceAll(decode1(stream(t, q, 32), small), []byte{0}, nil))
	if want := "fbhadecghcdfgabe"; got != want {
		t.Errorf("two epochs of seed 42 are %q, want %q", got, want)
	}
}

// All orders of four stories are about equally likely.
func TestShuffleIsUniform(t *testing.T) {
	s := build(t, listed{"a", "b", "c", "d"}, small)
	q, err := New(s, 8, 3, false)
	if err != nil {
		t.Fatal(err)
	}
	const epochs = 24 * 500
	count := map[string]int{}
	ids, targets := make([]int32, 8), make([]int32, 8)
	for n := range int64(epochs) {
		q.Sequence(n, ids, targets)
		count[string(decode1(targets, small))]++
	}
	if len(count) != 24 {
		t.Errorf("%d orders of 24", len(count))
	}
	for order, n := range count {
		if n < 380 || n > 620 { // standard deviation 22
			t.Errorf("order %q came %d times, want about 500", order, n)
		}
	}
}

func TestContextLengthIsChecked(t *testing.T) {
	s := build(t, listed{"a"}, small)
	if _, err := New(s, 0, 1, false); err == nil {
		t.Error("a context length of 0 is accepted")
	}
}

// Sequences that are kept apart have the same targets, and are the windows that scoring makes of the stories, but for those
// that a batch cuts.
func TestStoriesApart(t *testing.T) {
	corpus := listed{"a", "bc", "def", "a much longer story than all the others", "one", "twelve letters"}
	for _, tok := range []letters{small, large} {
		for _, length := range []int{1, 2, 5, 7, 64} {
			for _, per := range []int{1, 3} {
				s := build(t, corpus, tok)
				apart, err := New(s, length, 5, true)
				if err != nil {
					t.Fatal(err)
				}
				packed, _ := New(s, length, 5, false)
				eot := s.header.EOT
				var story []int32 // targets of the story under way
				for n := int64(0); n < 3*s.header.Tokens; n += int64(per) {
					ids, targets := make([]int32, per*length), make([]int32, per*length)
					other, want := slices.Clone(ids), slices.Clone(ids)
					lengths := apart.Batch(n, ids, targets, nil)
					if all := packed.Batch(n, other, want, []int{99}); !slices.Equal(all, append([]int{99}, slices.Repeat([]int{length}, per)...)) {
						t.Fatalf("packed sequences have lengths %v", all)
					}
					if !slices.Equal(targets, want) {
						t.Fatalf("batch %d: targets %v, packed %v", n, targets, want)
					}
					at := 0
					for _, l := range lengths {
						if l < 1 || l > length || at+l > len(ids) {
							t.Fatalf("batch %d: lengths %v", n, lengths)
						}
						first := eot
						if seen := len(story) % length; seen != 0 {
							first = story[len(story)-1]
							if at > 0 {
								t.Fatalf("batch %d: a window is cut inside of it: %v", n, lengths)
							}
						}
						for i := range l {
							if i > 0 {
								first = targets[at+i-1]
							}
							if ids[at+i] != first {
								t.Fatalf("batch %d, position %d: id %d, want %d", n, at+i, ids[at+i], first)
							}
							story = append(story, targets[at+i])
							if last := i == l-1; (targets[at+i] == eot) && !last {
								t.Fatalf("batch %d: a sequence goes across the end of a story", n)
							}
						}
						whole := len(story)%length == 0 || story[len(story)-1] == eot
						if at += l; !whole && at < len(ids) {
							t.Fatalf("batch %d: a window ends before its time: %v", n, lengths)
						}
						if story[len(story)-1] == eot {
							story = story[:0]
						}
					}
					if at != len(ids) {
						t.Fatalf("batch %d: lengths %v for %d positions", n, lengths, len(ids))
					}
				}
			}
		}
	}
}
