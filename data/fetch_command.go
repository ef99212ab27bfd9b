package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/fetch"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/usage"
)

// fetchOptions are the flags of `chiplm data fetch`.
type fetchOptions struct {
	variant, split, dir, base, revision, sum string
	force, asJSON                            bool
}

func fetchCommand() *cobra.Command {
	var o fetchOptions
	cmd := &cobra.Command{
		Use:   "fetch tinystories",
		Short: "Download the official TinyStories text",
		Long: `Download the official text files of TinyStories (Eldan and Li, 2023; licence CDLA-Sharing-1.0)
into this folder, or that of --dir. The one to train on and the held-out one belong side by side:
training finds the second by the name of the first.

  variant  split  file                          size
  v2       train  TinyStoriesV2-GPT4-train.txt  2228 MB
  v2       valid  TinyStoriesV2-GPT4-valid.txt  22.5 MB
  v1       train  TinyStories-train.txt         1924 MB
  v1       valid  TinyStories-valid.txt         19.4 MB

Variant v2, the default, was written by GPT-4 alone, v1 is the original mixture.

An interrupted download goes on where it stopped. Size and SHA-256 are checked before the file
gets its name: against the known ones of the default revision; with another --revision, against
what the server announces; with --sha256, against that. --base-url names a mirror with the same
layout.`,
		Example: `  chiplm data fetch tinystories
  chiplm train --corpus TinyStoriesV2-GPT4-train.txt
  chiplm data fetch tinystories --variant v1 --split valid --dir corpus`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "tinystories" {
				return errors.New("name what to fetch: chiplm data fetch tinystories")
			}
			return nil
		},
		ValidArgs: []string{"tinystories"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			requests, err := o.requests()
			if err != nil {
				return err
			}
			results := []*fetch.Result{}
			for _, r := range requests {
				result, err := fetchOne(cmd.Context(), cmd.ErrOrStderr(), r)
				if err != nil {
					return err
				}
				results = append(results, result)
				if o.asJSON {
					continue
				}
				if err := printFetched(cmd.OutOrStdout(), result); err != nil {
					return err
				}
			}
			if o.asJSON {
				return jsonout.Write(cmd.OutOrStdout(), struct {
					Files []*fetch.Result `json:"files"`
				}{results})
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.variant, "variant", "v2", "v2 (by GPT-4 alone) or v1 (the original mixture)")
	f.StringVar(&o.split, "split", "all", "all, train or valid")
	f.StringVar(&o.dir, "dir", ".", "folder to put the files in")
	f.StringVar(&o.base, "base-url", fetch.Hub, "address of the hub or of a mirror")
	f.StringVar(&o.revision, "revision", fetch.TinyStoriesRevision, "version of the data set: a commit or a branch")
	f.StringVar(&o.sum, "sha256", "", "expected SHA-256 of the one file, in place of the known one")
	f.BoolVar(&o.force, "force", false, "replace files that are there already")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	return cmd
}

// requests are the downloads that the flags ask for, the small one first.
func (o *fetchOptions) requests() ([]fetch.Request, error) {
	splits := []string{o.split}
	if o.split == "all" {
		splits = []string{"valid", "train"}
		if o.sum != "" {
			return nil, usage.Errorf("--sha256 is the hash of one file: name it with --split train or --split valid")
		}
	}
	var requests []fetch.Request
	for _, split := range splits {
		file, err := fetch.TinyStories(o.variant, split)
		if err != nil {
			return nil, usage.Errorf("%w; --split all fetches both", err)
		}
		url, err := fetch.TinyStoriesURL(o.base, o.revision, file.Name)
		if err != nil {
			return nil, usage.Errorf("--base-url: %w", err)
		}
		if o.revision != fetch.TinyStoriesRevision {
			file.Bytes, file.SHA256 = 0, "" // another version: the known ones say nothing about it
		}
		if o.sum != "" {
			file.Bytes, file.SHA256 = 0, o.sum
		}
		requests = append(requests, fetch.Request{URL: url, Path: filepath.Join(o.dir, file.Name), Bytes: file.Bytes,
			SHA256: file.SHA256, Force: o.force})
	}
	return requests, nil
}

func fetchOne(ctx context.Context, w io.Writer, r fetch.Request) (*fetch.Result, error) {
	show := progress.NewBytes(w, filepath.Base(r.Path))
	defer show.Done()
	r.Progress, r.Note = show.Update, show.Note
	return fetch.Get(ctx, r)
}

func printFetched(w io.Writer, r *fetch.Result) error {
	how := map[string]string{"expected": "as expected", "server": "as the server announces it",
		"size only": "but nothing to check it against"}[r.Verified]
	state := "downloaded"
	if r.Present {
		state = "already there"
	}
	_, err := fmt.Fprintf(w, "%s: %s, %d bytes, SHA-256 %s, %s\n", r.Path, state, r.Bytes, r.SHA256, how)
	return err
}
