package export

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/checkpoints"
	"github.com/chiplm/chiplm/checkpoints/released"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
)

// Command is `chiplm export`.
func Command() *cobra.Command {
	var target, out, root string
	var clusters, firmware string
	var asJSON bool
	var over Overrides
	c := &cobra.Command{
		Use:   "export [CHECKPOINT]",
		Short: "Write a checkpoint as an image for a chip, with its memory placement, and verify it",
		Long: `Write a checkpoint as an image for a chip.

The weights are quantised as they were trained, placed into the chip's memories, and written
with tokenizer and golden. The C engine then loads the image and runs the golden, whose digest
the training graph computed: "verified" means that both agree on every bit of every logit. Only
a verified export gets its final name.

CHECKPOINT is a checkpoint, a run (then its newest checkpoint), the name of a run under --runs, or
that of a released model (chiplm models), which keeps its codes and scales; without it, the newest
of all runs, or the released model if there are none. The output folder holds model.clm, placement
(text and JSON), sizes (text and JSON), golden.json, and manifest.json with the SHA-256 of each.
An older export of the same run in the default folder is replaced, one of another run is refused;
--out replaces any export. A folder that is no export is always refused.

For a chip that can be flashed there is also flasher.json, the manifest that browser flashers
such as ESP Web Tools read. With --firmware, the build folder of the firmware, the export carries
boot loader, partition table and application too, and the manifest lists them. Without, it lists
the model alone: decline when the browser offers to erase the chip, or the firmware is gone too.

Built-in targets: ` + strings.Join(targets.Builtin(), ", ") + `. Another chip is a YAML file of the same form.`,
		Example: `  chiplm export --target esp32s3
  chiplm export --model combo --target esp32s3
  chiplm export combo --target my-board.yaml --out combo-board
  chiplm export combo --firmware firmware/build
  chiplm export float-run --bits 4 --group 64 --bits ple_table=2`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return released.Completions(cmd.Context(), root), cobra.ShellCompDirectiveDefault // or a path
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			chip, err := targets.Load(target)
			if err != nil {
				return err
			}
			fw, err := firmwareFor(firmware, chip)
			if err != nil {
				return err
			}
			name, err := usage.Model(cmd.Flags(), args, "CHECKPOINT")
			if err != nil {
				return err
			}
			n, err := readClusters(clusters)
			if err != nil {
				return err
			}
			from, err := OpenSource(cmd.Context(), root, name, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			replaced := ""
			if out == "" {
				if out, replaced, err = defaultFolder(from.model, chip.Name, from.origin); err != nil {
					return err
				}
			}
			b, err := from.Build(cmd.Context(), Options{Target: chip, Overrides: over, Clusters: n, Measure: true})
			if err != nil {
				return err
			}
			b.Firmware = fw
			for _, n := range b.Notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", n)
			}
			m, err := from.Write(cmd.Context(), out, b)
			if err != nil {
				return err
			}
			if replaced != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", replaced)
			}
			r := &report{Out: out, Checkpoint: from.Path, Manifest: m, Layout: b.Layout}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&target, "target", "esp32s3", "chip: "+strings.Join(targets.Builtin(), ", ")+", or a YAML file")
	usage.AddModel(c.Flags(), "CHECKPOINT")
	c.Flags().StringVar(&out, "out", "", "output folder (default exports/MODEL-TARGET)")
	c.Flags().StringVar(&root, "runs", checkpoints.DefaultRoot, "folder of the runs")
	c.Flags().StringSliceVar(&over.Bits, "bits", nil, "quantise after training: bits 2, 4 or 8, or CLASS=BITS")
	c.Flags().StringSliceVar(&over.Group, "group", nil, "quantise after training: columns that share a scale, or CLASS=COLUMNS")
	c.Flags().StringVar(&clusters, "clusters", "auto",
		"clusters of the output layer, so that a token reads a part of it: a `NUMBER`, 0 for none, or auto (256 from 1,024 tokens on)")
	c.Flags().StringVar(&firmware, "firmware", "", "carry the firmware of this build folder of ESP-IDF too")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	complete(c, "target", cobra.ShellCompDirectiveDefault, targets.Builtin()) // or a file
	return c
}

// readClusters reads the flag --clusters.
func readClusters(s string) (int, error) {
	if s == "auto" {
		return AutoClusters, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, usage.Errorf("--clusters %q: a number of clusters, 0 for none, or auto", s)
	}
	return n, nil
}

// complete offers the values of a flag to the shell.
func complete(c *cobra.Command, flag string, directive cobra.ShellCompDirective, values []string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, directive)); err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
}

// report is what the command prints.
type report struct {
	Out        string            `json:"out"`
	Checkpoint string            `json:"checkpoint"`
	Manifest   *Manifest         `json:"manifest"`
	Layout     *placement.Layout `json:"placement"`
}

func (r *report) print(w io.Writer) error {
	m := r.Manifest
	if _, err := fmt.Fprintf(w, "checkpoint: %s, step %s, %s tokens\n\n", r.Checkpoint, digits.Comma(m.Step), digits.Comma(m.Tokens)); err != nil {
		return err
	}
	if err := r.Layout.WriteSummary(w); err != nil {
		return err
	}
	how := ""
	if m.PostTraining {
		how = " (quantised after training)"
	}
	_, err := fmt.Fprintf(w, "\n%s: %s parameters%s, image of %s bytes\nverified: the C engine and the training graph agree to the bit (digest %s)\n",
		filepath.Join(r.Out, ImageFile), digits.Comma(m.Parameters), how, digits.Comma(m.Files[ImageFile].Bytes), m.Digest)
	return err
}
