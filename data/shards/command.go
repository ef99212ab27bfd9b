package shards

import (
	"encoding/json"
	"fmt"

	"github.com/chiplm/chiplm/data"
	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/spf13/cobra"
)

// Command is `chiplm data tokenize`.
func Command() *cobra.Command {
	var tokenizer, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tokenize CORPUS --tokenizer tokenizer.json",
		Short: "Turn a corpus into a token shard",
		Long: `Turn a corpus into a token shard: the memory-mapped file of token ids that training reads.
Training makes one by itself, in the cache folder (CHIPLM_CACHE, or chiplm in the user's cache
folder); so does this command without -o.`,
		Example: `  chiplm data tokenize tinystories-train.txt --tokenizer tokenizer.json
  chiplm data tokenize builtin:1:2000 --tokenizer tokenizer.json -o stories.tokens`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tok, err := bpe.Load(tokenizer)
			if err != nil {
				return err
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
				return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
					Path string `json:"path"`
					Header
				}{s.Path(), h})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d tokens in %d stories, %.3f bytes per token\n", s.Path(), h.Tokens,
				h.Stories, float64(h.RawBytes)/float64(h.Tokens-h.Stories))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&tokenizer, "tokenizer", "", "tokenizer.json to use")
	f.StringVarP(&out, "output", "o", "", "file to write (default: in the cache folder)")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	_ = cmd.MarkFlagRequired("tokenizer")
	return cmd
}
