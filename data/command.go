package data

import "github.com/spf13/cobra"

// Command is `chiplm data`: fetch, generate and look at corpora.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Fetch, generate and inspect the text to train on",
		Long: `Fetch, generate and inspect corpora: the text that models are trained and scored on.

A corpus is a text file with stories divided by <|endoftext|>, a JSON or JSONL file with a
"story" or "text" field, any other text (divided at blank lines), or the built-in generator,
written builtin:seed:stories.`,
		Example: `  chiplm data fetch tinystories
  chiplm data info TinyStoriesV2-GPT4-valid.txt
  chiplm data generate --stories 2000 -o stories.txt`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(fetchCommand(), infoCommand(), generateCommand())
	return cmd
}
