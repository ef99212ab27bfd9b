package released

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
)

// Command is `chiplm models`.
func Command() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "models [NAME]",
		Short: "List the trained models that come with the program, or show one's card",
		Long: `List the trained models that come with the program: no training and no network are needed to
use them. With NAME, print the card of that model: text, training, score, limits, licence.

read/token is what the chip reads of the weights for one token when it reads every neuron and every
row of the output layer; bits/byte is the score on held-out stories that the card names.

Commands that take a run take these names too. A run of your own goes before a released model of
the same name; released/NAME always means the released one.`,
		Example: `  chiplm models
  chiplm models combo
  chiplm sample --model combo --prompt "Once upon a time"
  chiplm export --model combo --target esp32s3`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return From(cmd.Context()).Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, out := From(cmd.Context()), cmd.OutOrStdout()
			names := s.Names()
			if len(args) == 1 {
				names = args
			}
			all := []Facts{}
			for _, name := range names {
				m, err := s.Open(strings.TrimPrefix(name, Prefix))
				if err != nil {
					return err
				}
				all = append(all, m.Facts)
			}
			switch {
			case asJSON && len(args) == 1:
				return jsonout.Write(out, all[0])
			case asJSON:
				return jsonout.Write(out, map[string][]Facts{"models": all})
			case len(args) == 1:
				_, err := out.Write(all[0].Card())
				return err
			case len(all) == 0:
				_, err := fmt.Fprintln(out, "this program carries no released models; train one: chiplm train --config combo.yaml")
				return err
			}
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprintln(w, "model\tparameters\tbits/byte\tread/token\timage bytes\ttokens trained\t")
			for _, f := range all {
				fmt.Fprintf(w, "%s\t%s\t%.4f\t%s\t%s\t%s\t\n", f.Name, digits.Comma(f.Parameters), f.Score.BitsPerByte,
					digits.Comma(f.BytesPerToken), digits.Comma(f.ImageBytes), digits.Comma(f.Training.Tokens))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
