package checkpoints

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pathText is a path in JSON: any bytes come back as they were. The form is described at [State].
type pathText string

func (p pathText) MarshalJSON() ([]byte, error) {
	text := string(p)
	if !utf8.ValidString(text) || strings.HasPrefix(text, `"`) {
		text = strconv.Quote(text)
	}
	return json.Marshal(text)
}

func (p *pathText) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if strings.HasPrefix(text, `"`) {
		if path, err := strconv.Unquote(text); err == nil {
			text = path
		}
	}
	*p = pathText(text)
	return nil
}

// shownPath is a path for a terminal: quoted when it has bytes that do not print.
func shownPath(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
