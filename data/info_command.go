package data

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
)

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
				return jsonout.Write(cmd.OutOrStdout(), s)
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
