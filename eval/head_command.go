package eval

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/progress"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export"
	"github.com/chiplm/chiplm/export/clusters"
)

func headCommand() *cobra.Command {
	var (
		storiesPath, runs           string
		tokens                      int64
		best, workers, clusterCount int
		asJSON                      bool
	)
	cmd := &cobra.Command{
		Use:   "head [MODEL]",
		Short: "What must be read of the output layer to find the best tokens",
		Long: `Reads the output layer of MODEL in several ways along held-out stories and compares what they find
and what they read. The output layer's rows lie in clusters; bounds of each cluster and of each row
say which rows can be among the best tokens, and only these are read in full, to the bits of the
full layer.

  full       every row
  certified  all clusters and rows that can matter: the result is proved, always the full layer's
  fixed      only the best clusters, the least number that finds the same at 99.5 % of positions
  margin     bounds made smaller by a factor: less is read, nothing is proved

"agrees" is the share of positions at which all tokens searched for, ids and logits, are those of
the full layer. Bytes are those of the head for one token, with everything that decides on rows.

MODEL is an image with clusters, a folder that export wrote, or a run, checkpoint or released
model, which is then packed with --clusters. What it prints belongs to these stories; export plans
with the model's own.`,
		Example: `  chiplm eval head combo --stories tinystories-valid.txt
  chiplm eval head exports/combo-esp32s3 --stories tinystories-valid.txt --best 1 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if tokens < 1 || best < 1 || workers < 1 || clusterCount < 1 {
				return usage.Errorf("--tokens, --best, --workers and --clusters must be 1 or more")
			}
			name, err := usage.Model(cmd.Flags(), args, "MODEL")
			if err != nil {
				return err
			}
			s, err := openWith(cmd.Context(), name, runs, cmd.ErrOrStderr(), export.Options{Clusters: clusterCount})
			if err != nil {
				return err
			}
			defer func() {
				if e := s.close(); err == nil {
					err = e
				}
			}()
			if s.image.Model().Clusters == 0 {
				return fmt.Errorf("%s has no clusters: export it with --clusters, or name its checkpoint", s.path)
			}
			corpus, err := heldOut(storiesPath, []*subject{s})
			if err != nil {
				return err
			}
			bar := progress.NewTokens(cmd.ErrOrStderr(), "head")
			ways := int64(1 + 2*4 + 2*8) // at most: the search for the fixed number halves 256
			r, err := measureHead(cmd.Context(), s, corpus, tokens, best, workers, func(done int64) { bar.Update(min(done, ways*tokens), ways*tokens) })
			bar.Done()
			if err != nil {
				return err
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), r)
			}
			return r.write(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	usage.AddModel(f, "MODEL")
	f.StringVar(&storiesPath, "stories", "", "held-out stories (default: those recorded in the checkpoint)")
	f.Int64Var(&tokens, "tokens", 10_000, "read whole stories of at least `N` positions in all")
	f.IntVar(&best, "best", 40, "how many best tokens sampling would choose among; the likeliest alone is measured too")
	f.IntVar(&clusterCount, "clusters", clusters.DefaultCount, "clusters that a checkpoint is packed with")
	f.IntVar(&workers, "workers", runtime.NumCPU(), "windows read at the same time; the result is the same for any number")
	f.StringVar(&runs, "runs", "checkpoints/runs", "where the newest run is looked for")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (r *HeadReport) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "model    %s: %s, %d clusters\n", r.Model, r.Path, r.Clusters)
	fmt.Fprintf(&b, "stories  %s: the first %s, %s positions, sha256 %.12s\n", r.Stories.Path, digits.Comma(r.Stories.Count),
		digits.Comma(r.Positions), r.Stories.SHA256)
	fmt.Fprintf(&b, "head     %s bytes a token in full, of %s bytes of all weights\n\n", digits.Comma(r.HeadBytes), digits.Comma(r.Token))
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "way\tbest\tclusters\tmargin\tagrees\trows\tbytes/token\tof the head\t")
	for _, x := range r.Ways {
		limit := "all"
		if x.Clusters > 0 {
			limit = fmt.Sprint(x.Clusters)
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%.2f\t%.3f %%\t%.0f\t%s\t%.1f %%\t\n", x.Name, x.Best, limit, x.Margin, 100*x.Agreement, x.Rows,
			digits.Comma(int64(math.Round(x.Bytes))), 100*x.Bytes/float64(r.HeadBytes))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, c := range r.Costs {
		fmt.Fprintf(&b, "\nThe best %d: certified reads %s bytes a token more than fixed, %.1f %% of all its bytes.", c.Best,
			digits.Comma(int64(math.Round(c.Bytes))), 100*c.ShareOfToken)
	}
	fmt.Fprintln(&b)
	_, err := io.WriteString(w, b.String())
	return err
}
