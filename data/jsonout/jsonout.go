// Package jsonout prints results as JSON, in one form for all commands: one object, indented by two spaces, with <, >
// and & as they are, and a line end.
package jsonout

import (
	"encoding/json"
	"io"
)

// Write prints v.
func Write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
