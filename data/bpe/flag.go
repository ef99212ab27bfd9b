package bpe

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/usage"
)

// whereFound tells those who have no tokenizer at hand where one is.
const whereFound = "train puts one into the run's folder, checkpoints/runs/NAME/tokenizer.json: name it with --tokenizer"

// AddFlag gives a command the flag --tokenizer, or -t, which is tokenizer.json in the working folder when it is left
// out. The function that it returns loads that tokenizer and tells its path, once the flags have been read. A tokenizer
// that is neither named nor there is an error of usage.
func AddFlag(c *cobra.Command) func() (*Tokenizer, string, error) {
	path := c.Flags().StringP("tokenizer", "t", "tokenizer.json", "tokenizer.json to use")
	return func() (*Tokenizer, string, error) {
		t, err := Load(*path)
		if errors.Is(err, os.ErrNotExist) {
			if !c.Flags().Changed("tokenizer") {
				return nil, "", usage.Errorf("no tokenizer is named, and there is no %s here; %s", *path, whereFound)
			}
			return nil, "", &missing{*path, err}
		}
		return t, *path, err
	}
}

// missing is the error of a tokenizer that is named and not there.
type missing struct {
	path string
	err  error
}

func (m *missing) Error() string { return "tokenizer " + m.path + " does not exist; " + whereFound }

func (m *missing) Unwrap() error { return m.err }
