package data

import (
	"context"
	"unicode/utf8"
)

// Summary is what reading a whole corpus tells about it.
type Summary struct {
	Info
	Stories      int64  `json:"stories"`
	StoryBytes   int64  `json:"story_bytes"`   // sum of the stories' lengths
	LongestBytes int    `json:"longest_bytes"` // length of the longest story
	Longest      int64  `json:"longest"`       // which story that is, from 0
	NotUTF8      int64  `json:"not_utf8"`      // stories with bytes that are not UTF-8
	HeldOut      string `json:"held_out"`      // file of held-out stories beside it, if there is one
}

// Summarise reads a whole corpus.
func Summarise(ctx context.Context, c Corpus) (*Summary, error) {
	s := &Summary{Info: c.Info()}
	err := c.Stories(ctx, func(story []byte) error {
		if len(story) > s.LongestBytes {
			s.LongestBytes, s.Longest = len(story), s.Stories
		}
		if !utf8.Valid(story) {
			s.NotUTF8++
		}
		s.Stories++
		s.StoryBytes += int64(len(story))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if f, ok := c.(*file); ok {
		s.HeldOut = HeldOutPath(f.info.Path)
	}
	return s, nil
}
