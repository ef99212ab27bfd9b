package shards

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/usage"
)

// Command is `chiplm data tokenize`.
func Command() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tokenize CORPUS",
		Short: "Turn a corpus into a token shard",
		Long: `Turn a corpus into a token shard: the memory-mapped file of token ids that training reads.
It takes 2 bytes a token (4 where the vocabulary has more than 65536 entries) and 8 bytes a story:
for the 2.2 GB of TinyStories about 1.1 GB.

Training makes one by itself, in the cache folder; so does this command without -o. The cache
folder is the one that CHIPLM_CACHE names, else chiplm in the user's cache folder, on Linux
~/.cache/chiplm. It only grows. To empty it, remove its files shard-*.tokens: what is missing is
made again.`,
		Example: `  chiplm data tokenize tinystories-train.txt --tokenizer tokenizer.json
  chiplm data tokenize builtin:1:2000 -t checkpoints/runs/combo/tokenizer.json -o stories.tokens
  rm ~/.cache/chiplm/shard-*.tokens`,
		Args: cobra.ExactArgs(1),
	}
	tokenizer := bpe.AddFlag(cmd)
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "file to write (default: in the cache folder)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tok, path, err := tokenizer()
		if err != nil {
			return err
		}
		if out != "" {
			if err := regular.KeepInput(out, args[0], path); err != nil {
				return usage.Errorf("-o %w", err)
			}
		}
		corpus, err := data.OpenContext(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		info := corpus.Info()
		show := progress.NewBytes(cmd.ErrOrStderr(), info.Name)
		s, err := func() (*Shard, error) {
			defer show.Done()
			update := func(n int64) { show.Update(n, info.Bytes) }
			if out == "" {
				return Build(cmd.Context(), corpus, tok, "", update)
			}
			if err := Write(cmd.Context(), out, corpus, tok, update); err != nil {
				return nil, err
			}
			return Open(out)
		}()
		if err != nil {
			return err
		}
		defer s.Close()
		h := s.Header()
		if asJSON {
			return jsonout.Write(cmd.OutOrStdout(), struct {
				Path string `json:"path"`
				Header
			}{s.Path(), h})
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d tokens in %d stories, %.3f bytes per token\n", s.Path(), h.Tokens,
			h.Stories, float64(h.RawBytes)/float64(h.Tokens-h.Stories))
		return err
	}
	return cmd
}
