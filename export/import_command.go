package export

import (
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/export/esp32ai"
	"github.com/chiplm/chiplm/export/placement"
	"github.com/chiplm/chiplm/export/targets"
)

// ImportCommand is `chiplm import`.
func ImportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Make an image of a model that another program trained: esp32-ai",
		Long: `Make an image of a model that another program trained, with its own codes and scales: nothing is
quantised again. docs/import.md says what is kept and what differs.`,
		Example: "  chiplm import esp32-ai model.bin --tokenizer bpe32768.json",
	}
	c.AddCommand(importESP32AI())
	return c
}

func importESP32AI() *cobra.Command {
	var target, out, name, tokenizer, clusters string
	var asJSON bool
	c := &cobra.Command{
		Use:   "esp32-ai FILE",
		Short: "Make an image of a model file of esp32-ai",
		Long: `Make an image of FILE, a model file of the esp32-ai project (version 1, or the older form without a
version). The 4-bit codes and float16 scales stay as they are. The result is a folder like that of
chiplm export: image, placement in the chip's memories, sizes, golden, manifest. The C engine then
runs the golden, whose digest a plain reference of docs/numerics.md computed: "verified" means that
both agree on every bit of every logit.

The file says nothing of its tokenizer: give the tokenizer.json of the same training. Without it the
image has none; then tokens stand for no text, and whatever reads or writes text refuses the image,
but token ids, the golden, bench decode and the board work.

What an image cannot hold exactly is refused, by the name of the tensor.

Built-in targets: ` + strings.Join(targets.Builtin(), ", ") + `. Another chip is a YAML file of the same form.`,
		Example: `  chiplm import esp32-ai model.bin --tokenizer bpe32768.json
  chiplm import esp32-ai model.bin --name tales --target host --clusters 0
  chiplm bench decode exports/esp32-ai-esp32s3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage.Errorf("FILE is empty: name a model file of esp32-ai")
			}
			n, err := readClusters(clusters)
			if err != nil {
				return err
			}
			chip, err := targets.Load(target)
			if err != nil {
				return err
			}
			var tok *bpe.Tokenizer
			if tokenizer != "" {
				if tok, err = bpe.Load(tokenizer); err != nil {
					return fmt.Errorf("--tokenizer: %w", err)
				}
			}
			f, err := esp32ai.Open(args[0])
			if err != nil {
				return err
			}
			hash, replaced := hex.EncodeToString(f.SHA256[:]), ""
			if out == "" {
				if out, replaced, err = importFolder(name, chip.Name, hash); err != nil {
					return err
				}
			}
			b, err := ImportImage(cmd.Context(), f, name, tok, Options{Target: chip, Clusters: n, Measure: true})
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if tok == nil {
				b.Notes = append(b.Notes, "no tokenizer was given: tokens of this image stand for no text, only ids can be used")
			}
			for _, n := range b.Notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", n)
			}
			m, err := write(cmd.Context(), out, b, Manifest{Imported: "esp32-ai", ModelHash: hash})
			if err != nil {
				return err
			}
			if replaced != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", replaced)
			}
			r := &importReport{File: args[0], Out: out, Manifest: m, Layout: b.Layout}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&target, "target", "esp32s3", "chip: "+strings.Join(targets.Builtin(), ", ")+", or a YAML file")
	c.Flags().StringVar(&out, "out", "", "output folder (default exports/NAME-TARGET)")
	c.Flags().StringVar(&name, "name", "esp32-ai", "name of the model in the image")
	c.Flags().StringVar(&tokenizer, "tokenizer", "", "the model's tokenizer, a Hugging Face tokenizer.json `FILE`")
	c.Flags().StringVar(&clusters, "clusters", "auto",
		"clusters of the output layer, so that a token reads a part of it: a `NUMBER`, 0 for none, or auto (256 from 1,024 tokens on)")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	complete(c, "target", cobra.ShellCompDirectiveDefault, targets.Builtin()) // or a file
	return c
}

// importReport is what the command prints.
type importReport struct {
	File     string            `json:"file"`
	Out      string            `json:"out"`
	Manifest *Manifest         `json:"manifest"`
	Layout   *placement.Layout `json:"placement"`
}

func (r *importReport) print(w io.Writer) error {
	m := r.Manifest
	if _, err := fmt.Fprintf(w, "imported: %s, sha256 %.12s\n\n", r.File, m.ModelHash); err != nil {
		return err
	}
	if err := r.Layout.WriteSummary(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s: %s parameters, image of %s bytes\nverified: the C engine and the reference agree to the bit (digest %s)\n",
		filepath.Join(r.Out, ImageFile), digits.Comma(m.Parameters), digits.Comma(m.Files[ImageFile].Bytes), m.Digest)
	return err
}
