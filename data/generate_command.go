package data

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/usage"
)

func generateCommand() *cobra.Command {
	var stories int
	var seed uint64
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Write the built-in stories to a file",
		Long: `Write stories of the built-in generator as text, divided by <|endoftext|>. The same seed gives
the same stories everywhere, no two of them alike. Training can also use them directly, as
--corpus builtin:seed:stories. With -o, --json prints the file's path, stories, bytes and SHA-256.`,
		Example: `  chiplm data generate --stories 2000 --seed 1 -o stories.txt
  chiplm data generate --stories 2000 -o stories.txt --json
  chiplm data generate --stories 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stories < 1 || stories > MaxBuiltin {
				return usage.Errorf("--stories %d: give a number from 1 to %d", stories, MaxBuiltin)
			}
			c := Builtin(seed, stories)
			if out == "" || out == "-" {
				if asJSON {
					return usage.Errorf("--json without -o: the stories themselves go to standard output; name a file with -o")
				}
				_, err := WriteDelimited(cmd.Context(), cmd.OutOrStdout(), c)
				return err
			}
			n, err := writeFile(cmd.Context(), out, c)
			if cause := cmd.Context().Err(); cause != nil && errors.Is(err, cause) {
				return fmt.Errorf("writing %s was stopped, and nothing was written: run the same command again (%w)", out, cause)
			}
			if err != nil {
				return fmt.Errorf("writing %s: %w", out, regular.Cause(err))
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), struct {
					Path    string `json:"path"`
					Stories int    `json:"stories"`
					Bytes   int64  `json:"bytes"`
					SHA256  string `json:"sha256"`
				}{out, stories, n, c.Info().SHA256})
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d stories, %d bytes\n", out, stories, n)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&stories, "stories", DefaultStories, "number of stories")
	f.Uint64Var(&seed, "seed", DefaultSeed, "seed of the generator")
	f.StringVarP(&out, "output", "o", "", "file to write (default: standard output)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object about the file; needs -o")
	return cmd
}

// writeFile writes a corpus as delimited text, whole or not at all.
func writeFile(ctx context.Context, path string, c Corpus) (n int64, err error) {
	err = regular.Write(path, func(w io.Writer) error {
		n, err = WriteDelimited(ctx, w, c)
		return err
	})
	return n, err
}
