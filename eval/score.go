package eval

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/windows"
)

// ErrNotFinite occurs when a score is NaN or infinite.
var ErrNotFinite = errors.New("the score is not finite; the weights of this model are damaged or it diverged in training")

// A scorer gives the nats of every target of a window. It is used by one goroutine.
type scorer interface {
	score(inputs, targets []int32, nats []float64) error
	close() error
}

// Score is what a model makes of the held-out stories.
type Score struct {
	Tokens             int64   `json:"tokens"`                 // tokens of the stories, the closing end-of-text not counted
	NatsPerToken       float64 `json:"nats_per_token"`         //
	BitsPerByte        float64 `json:"bits_per_byte"`          // the closing end-of-text is not charged
	BitsPerByteWithEnd float64 `json:"bits_per_byte_with_end"` // it is charged
}

// storyNats is the price of one story.
type storyNats struct {
	tokens    int64
	text, end float64 // nats of the story's tokens, and of the closing end-of-text
}

// scoreStories scores all stories with one scorer per worker. The sum is taken in the order of the stories, so the
// result does not depend on the number of workers. progress is told after every story.
func scoreStories(ctx context.Context, stories *Stories, tok *bpe.Tokenizer, contextLength, workers int,
	newScorer func() (scorer, error), progress func(bytes int)) (Score, error) {

	prices := make([]storyNats, len(stories.texts))
	err := share(ctx, len(stories.texts), workers, func() (*worker, error) {
		s, err := newScorer()
		if err != nil {
			return nil, err
		}
		return &worker{
			do: func(i int) (err error) {
				if prices[i], err = priceStory(s, stories.texts[i], tok, contextLength); err != nil {
					return fmt.Errorf("story %d of %s: %w", i+1, stories.Path, err)
				}
				return nil
			},
			tell: func(i int) { progress(len(stories.texts[i])) },
			end:  s.close,
		}, nil
	})
	if err != nil {
		return Score{}, err
	}

	var sum storyNats
	for _, p := range prices {
		sum.tokens += p.tokens
		sum.text += p.text
		sum.end += p.end
	}
	perByte := 1 / (math.Ln2 * float64(stories.Bytes))
	return Score{
		Tokens:             sum.tokens,
		NatsPerToken:       sum.text / float64(sum.tokens),
		BitsPerByte:        sum.text * perByte,
		BitsPerByteWithEnd: (sum.text + sum.end) * perByte,
	}, nil
}

// priceStory sums the nats of one story's tokens and of its closing end-of-text.
func priceStory(s scorer, story []byte, tok *bpe.Tokenizer, contextLength int) (storyNats, error) {
	ids, err := windows.Encode(tok, nil, story)
	if err != nil {
		return storyNats{}, err
	}
	p := storyNats{tokens: int64(len(ids))}
	nats := make([]float64, contextLength)
	left := len(ids)
	err = windows.Cut(ids, tok.EOT(), contextLength, func(inputs, targets []int32) error {
		nats := nats[:len(targets)]
		if err := s.score(inputs, targets, nats); err != nil {
			return err
		}
		for _, n := range nats {
			if left > 0 {
				p.text += n
				left--
			} else {
				p.end += n
			}
		}
		return nil
	})
	if err == nil && (math.IsNaN(p.text+p.end) || math.IsInf(p.text+p.end, 0)) {
		err = ErrNotFinite
	}
	return p, err
}
