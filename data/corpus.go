package data

import (
	"context"
	"errors"
)

// A Corpus is a source of stories that can be read any number of times, always in the same order.
type Corpus interface {
	// Stories calls yield with every story in order. The bytes are only valid during the call. It stops at the first
	// error of yield and returns that error as it is (return [ErrStop] to stop early without one). A corpus without a
	// single story is an error that wraps [ErrNoStories]; cancelling ctx ends the reading with its error.
	Stories(ctx context.Context, yield func(story []byte) error) error

	// Info says what the corpus is.
	Info() Info
}

// Kind is the form in which a corpus holds its stories.
type Kind string

// The kinds of corpora.
const (
	KindDelimited Kind = "delimited" // text, stories divided by <|endoftext|>
	KindJSON      Kind = "json"      // one JSON array of records
	KindJSONL     Kind = "jsonl"     // one JSON record after another, usually one a line
	KindText      Kind = "text"      // plain text, divided at blank lines
	KindBuiltin   Kind = "builtin"   // the built-in generator
)

// Info describes a corpus.
type Info struct {
	// Path re-opens the corpus with [Open]: an absolute path or "builtin:seed:stories", with "#train" or "#held-out"
	// behind it for a part made by [Split].
	Path string `json:"path"`
	// Name is the last element of Path, for tables.
	Name string `json:"name"`
	// Kind is the form of the whole corpus, also for a part of it.
	Kind Kind `json:"kind"`
	// SHA256 identifies the stories, as 64 hexadecimal digits: the hash of the file's bytes; for the generator, of the
	// file that `chiplm data generate` writes; for a part, of the whole's hash and the part's name.
	SHA256 string `json:"sha256"`
	// Bytes is the size of what SHA256 was taken of: the file, delimiters included. A part has the size of its whole.
	Bytes int64 `json:"bytes"`
}

// Delimiter divides the stories of a delimited text.
const Delimiter = "<|endoftext|>"

// MaxStory is the most bytes that one story may have. It bounds the memory of reading.
const MaxStory = 64 << 20

// Errors that callers may test for with errors.Is.
var (
	// ErrNoStories: the corpus was read to its end and held no story.
	ErrNoStories = errors.New("holds no story")
	// ErrStop is returned by a callback of Stories to stop reading without an error.
	ErrStop = errors.New("stop reading stories")
)
