package regular

import (
	"fmt"
	"os"
)

// KeepInput refuses to write a file at a path where one of the inputs of the same command lies, however each is called: links
// and other spellings count. What to do next stands in the error.
func KeepInput(path string, inputs ...string) error {
	there, err := os.Stat(path)
	if err != nil {
		return nil // nothing to lose
	}
	for _, input := range inputs {
		if info, err := os.Stat(input); err == nil && os.SameFile(there, info) {
			return fmt.Errorf("%s is the file %s, which is read here and would be lost: give the output another name", path, input)
		}
	}
	return nil
}
