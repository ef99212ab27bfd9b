package fetch

import (
	"encoding/json"
	"os"
)

// state is what is known of a part, so that a later attempt can go on.
type state struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`          // a strong one
	LastModified string `json:"last_modified,omitempty"` //
	Size         int64  `json:"size,omitempty"`          // of the whole file
	SHA256       string `json:"sha256,omitempty"`        // as announced by the server
}

func stateName(part string) string { return part + ".json" }

// readState reads the state of a part; one that cannot be read is as good as none.
func readState(part string) state {
	var s state
	if b, err := os.ReadFile(stateName(part)); err != nil || json.Unmarshal(b, &s) != nil {
		return state{}
	}
	return s
}

// write keeps the state beside the part.
func (s state) write(part string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(stateName(part), b, 0o644)
}

// validator is what If-Range can use to make sure that the file is still the same; empty when nothing can.
func (s state) validator() string {
	if s.ETag != "" {
		return s.ETag
	}
	return s.LastModified
}
