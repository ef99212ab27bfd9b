package data

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chiplm/chiplm/data/fetch"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/spf13/cobra"
)

// Command is `chiplm data`: fetch, generate and look at corpora.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Fetch, generate and inspect the text to train on",
		Long: `Fetch, generate and inspect corpora: the text that models are trained and scored on.

A corpus is a text file with stories divided by <|endoftext|>, a JSON or JSONL file with a
"story" or "text" field, any other text (divided at blank lines), or the built-in generator,
written builtin:seed:stories.`,
		Example: `  chiplm data fetch tinystories --split valid
  chiplm data info TinyStoriesV2-GPT4-valid.txt
  chiplm data generate --stories 2000 -o stories.txt`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(fetchCommand(), infoCommand(), generateCommand())
	return cmd
}

func fetchCommand() *cobra.Command {
	var variant, split, dir, base, revision, sum string
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "fetch tinystories",
		Short: "Download the official TinyStories text",
		Long: `Download an official text file of TinyStories (Eldan and Li, 2023; licence CDLA-Sharing-1.0):
about 2 GB to train on, about 20 MB held out. Variant v2 was written by GPT-4 alone, v1 is the
original mixture.

An interrupted download goes on where it stopped. Size and SHA-256 are checked before the file
gets its name: against the known ones of the default revision; with another --revision, against
what the server announces; with --sha256, against that. --base-url names a mirror with the same
layout.`,
		Example: `  chiplm data fetch tinystories
  chiplm data fetch tinystories --variant v1 --split valid --dir corpus`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "tinystories" {
				return errors.New("name what to fetch: chiplm data fetch tinystories")
			}
			return nil
		},
		ValidArgs: []string{"tinystories"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := fetch.TinyStories(variant, split)
			if err != nil {
				return err
			}
			url, err := fetch.TinyStoriesURL(base, revision, file.Name)
			if err != nil {
				return err
			}
			if revision != fetch.TinyStoriesRevision {
				file.Bytes, file.SHA256 = 0, "" // another version: the known ones say nothing about it
			}
			if sum != "" {
				file.Bytes, file.SHA256 = 0, sum
			}
			show := progress.NewBytes(cmd.ErrOrStderr(), file.Name)
			result, err := fetch.Get(cmd.Context(), fetch.Request{URL: url, Path: filepath.Join(dir, file.Name),
				Bytes: file.Bytes, SHA256: file.SHA256, Force: force, Progress: show.Update, Note: show.Note})
			show.Done()
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
			}
			how := map[string]string{"expected": "as expected", "server": "as the server announces it",
				"size only": "but nothing to check it against"}[result.Verified]
			state := "downloaded"
			if result.Present {
				state = "already there"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %d bytes, SHA-256 %s, %s\n", result.Path, state, result.Bytes,
				result.SHA256, how)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&variant, "variant", "v2", "v2 (by GPT-4 alone) or v1 (the original mixture)")
	f.StringVar(&split, "split", "train", "train or valid")
	f.StringVar(&dir, "dir", ".", "folder to put the file in")
	f.StringVar(&base, "base-url", fetch.Hub, "address of the hub or of a mirror")
	f.StringVar(&revision, "revision", fetch.TinyStoriesRevision, "version of the data set: a commit or a branch")
	f.StringVar(&sum, "sha256", "", "expected SHA-256, in place of the known one")
	f.BoolVar(&force, "force", false, "replace a file that is there already")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

func infoCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info CORPUS",
		Short: "Say what a corpus holds",
		Long:  "Read a whole corpus and say what it holds: kind, stories, bytes, hash, and what is unusual about it.",
		Example: `  chiplm data info tinystories-train.txt
  chiplm data info builtin:1:2000 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := OpenContext(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s, err := Summarise(cmd.Context(), c)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(s)
			}
			heldOut := s.HeldOut
			if heldOut == "" {
				heldOut = "none beside it: every fiftieth story is held out"
			}
			for _, row := range []struct {
				name  string
				value any
			}{
				{"corpus", s.Path}, {"kind", s.Kind}, {"sha256", s.SHA256}, {"bytes", s.Bytes}, {"stories", s.Stories},
				{"story bytes", s.StoryBytes}, {"mean story", fmt.Sprintf("%.1f bytes", float64(s.StoryBytes)/float64(s.Stories))},
				{"longest story", fmt.Sprintf("%d bytes (story %d)", s.LongestBytes, s.Longest+1)},
				{"not UTF-8", fmt.Sprintf("%d stories", s.NotUTF8)}, {"held-out file", heldOut},
			} {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-14s %v\n", row.name, row.value); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func generateCommand() *cobra.Command {
	var stories int
	var seed uint64
	var out string
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Write the built-in stories to a file",
		Long: `Write stories of the built-in generator as text, divided by <|endoftext|>. The same seed gives
the same stories everywhere, no two of them alike. Training can also use them directly, as
--corpus builtin:seed:stories.`,
		Example: `  chiplm data generate --stories 2000 --seed 1 -o stories.txt
  chiplm data generate --stories 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stories < 1 || stories > MaxBuiltin {
				return fmt.Errorf("--stories %d: give a number from 1 to %d", stories, MaxBuiltin)
			}
			c := Builtin(seed, stories)
			if out == "" || out == "-" {
				_, err := WriteDelimited(cmd.Context(), cmd.OutOrStdout(), c)
				return err
			}
			n, err := writeFile(cmd.Context(), out, c)
			if err != nil {
				return fmt.Errorf("writing %s: %w", out, err)
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d stories, %d bytes\n", out, stories, n)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&stories, "stories", DefaultStories, "number of stories")
	f.Uint64Var(&seed, "seed", DefaultSeed, "seed of the generator")
	f.StringVarP(&out, "output", "o", "", "file to write (default: standard output)")
	return cmd
}

// writeFile writes a corpus as delimited text under a temporary name, syncs it and renames it.
func writeFile(ctx context.Context, path string, c Corpus) (n int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriter(f)
	if n, err = WriteDelimited(ctx, w, c); err != nil {
		return 0, err
	}
	if err = w.Flush(); err != nil {
		return 0, err
	}
	if err = f.Chmod(0o644); err != nil {
		return 0, err
	}
	if err = f.Sync(); err != nil {
		return 0, err
	}
	if err = f.Close(); err != nil {
		return 0, err
	}
	return n, os.Rename(f.Name(), path)
}
