package checkpoints

import (
	"os"
	"path/filepath"
)

// Kind says what a path is: "checkpoint", a folder of one or its weights; "run", a folder of checkpoints; "" for all else.
func Kind(path string) string {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() && filepath.Base(path) == ModelFile {
		path = filepath.Dir(path)
	}
	switch {
	case err != nil:
	case isCheckpoint(path):
		return "checkpoint"
	case isRun(path):
		return "run"
	}
	return ""
}
