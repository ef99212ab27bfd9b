package data

import (
	"fmt"
	"io"
)

// records reads the stories of a JSON file: the elements of one array, or one record after another.
func records(r io.Reader, offset int64, limit int, array bool, yield func([]byte) error) error {
	l := newJSONLexer(r, offset, limit)
	var story, text []byte
	record := func() error {
		var isStory bool
		var err error
		if story, text, isStory, err = l.record(story[:0], text[:0]); err != nil {
			return err
		}
		chosen := text
		if isStory {
			chosen = story
		}
		if chosen = clean(chosen); len(chosen) > 0 {
			return yield(chosen)
		}
		return nil
	}
	if array {
		if _, ok := l.space(); !ok {
			return l.end("the file")
		}
		if err := l.array(record); err != nil {
			return err
		}
		if b, ok := l.space(); ok {
			return l.errorf("%s after the end of the array", show(b))
		}
	} else {
		for {
			if _, ok := l.space(); !ok {
				break
			}
			if err := record(); err != nil {
				return err
			}
		}
	}
	if l.err != io.EOF {
		return l.err
	}
	return nil
}

// record reads one record and appends its fields to story and text; isStory tells that it has a "story" field.
// A record that is a string counts as text.
func (l *jsonLexer) record(story, text []byte) (_, _ []byte, isStory bool, err error) {
	b, ok := l.space()
	if !ok {
		return story, text, false, l.end("an array")
	}
	if b == '"' {
		text, err = l.str(text, true)
		return story, text, false, err
	}
	if b != '{' {
		return story, text, false, l.errorf("%s where a record is wanted: an object with a \"story\" or \"text\" field",
			show(b))
	}
	line, offset := l.line, l.start+int64(l.pos)
	isText := false
	var keys []string
	err = l.object(func(key []byte) error {
		switch string(key) {
		case "story":
			isStory = true
			story, err = l.field("story", story[:0])
			return err
		case "text":
			isText = true
			text, err = l.field("text", text[:0])
			return err
		}
		if len(keys) < 5 {
			keys = append(keys, string(key[:min(len(key), 30)]))
		}
		return l.skip(1)
	})
	if err == nil && !isStory && !isText {
		err = fmt.Errorf("line %d, byte %d: a record without a \"story\" or \"text\" field (it has %q): rename the field "+
			"that holds the story", line, offset, keys)
	}
	return story, text, isStory, err
}

// field reads the value of a field that must be a string, or null for none.
func (l *jsonLexer) field(name string, dst []byte) ([]byte, error) {
	b, ok := l.space()
	if !ok {
		return dst, l.end("a record")
	}
	if b == '"' {
		return l.str(dst, true)
	}
	at := l.errorf("field %q must be a string", name)
	if b != 'n' {
		return dst, at
	}
	if s, err := l.scalar(); err != nil || s != "null" {
		return dst, at
	}
	return dst, nil
}
