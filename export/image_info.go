package export

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/digits"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/export/image"
)

// imageInfo is what `chiplm image info` prints.
type imageInfo struct {
	File      string               `json:"file"`
	Bytes     int64                `json:"bytes"`
	Version   int                  `json:"version"`
	CRC       string               `json:"crc32"`
	Params    int64                `json:"parameters"`
	Sizes     image.Sizes          `json:"sizes"`
	Model     string               `json:"model_sha256"`
	TokHash   string               `json:"tokenizer_sha256"`
	Config    string               `json:"config"`
	Sections  []sectionInfo        `json:"sections"`
	Tensors   []tensorInfo         `json:"tensors"`
	Tokenizer image.TokenizerFacts `json:"tokenizer"`
	Golden    goldenInfo           `json:"golden"`
}

type sectionInfo struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	CRC    string `json:"crc32"`
}

type tensorInfo struct {
	Name   string     `json:"name"`
	Rows   int        `json:"rows"`
	Cols   int        `json:"columns"`
	Bits   int        `json:"bits"`
	Group  int        `json:"group"`
	Scale  string     `json:"scale"`
	Block  int        `json:"block"` // 0: stored by rows; else by columns, of so many rows at a time
	Tier   image.Tier `json:"tier"`
	Codes  int        `json:"code_bytes"`
	Scales int        `json:"scale_bytes"`
	Offset int64      `json:"offset"`
}

func infoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info IMAGE",
		Short: "Print header, sizes, configuration, tensors, tokenizer and golden of an image",
		Long: `Print what an image holds: header, sections, model sizes, configuration, a line per tensor with
its tier, tokenizer and golden. A damaged image is refused; chiplm image check says where it is
damaged.`,
		Example: "  chiplm image info exports/combo-esp32s3/model.clm",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := image.Open(ImageAt(args[0]))
			if err != nil {
				return err
			}
			info, err := describe(ImageAt(args[0]), f)
			if err != nil {
				return err
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), info)
			}
			return info.print(cmd.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func describe(path string, f *image.File) (*imageInfo, error) {
	facts, err := f.TokenizerFacts()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	tok, err := bpe.FromImage(f.Tokenizer)
	if err != nil && !errors.Is(err, bpe.ErrNone) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	info := &imageInfo{
		File: path, Bytes: f.Bytes, Version: image.Version, CRC: fmt.Sprintf("%08x", f.CRC), Sizes: f.Sizes,
		Model: hex.EncodeToString(f.Sizes.ModelHash[:]), TokHash: hex.EncodeToString(f.Sizes.TokenizerHash[:]),
		Config: string(f.Config), Tokenizer: facts, Golden: describeGolden(&f.Golden, tok),
	}
	for _, s := range f.Sections {
		info.Sections = append(info.Sections, sectionInfo{s.Name, s.Offset, s.Bytes, fmt.Sprintf("%08x", s.CRC)})
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		info.Params += int64(t.Parameters())
		info.Tensors = append(info.Tensors, tensorInfo{t.Name, t.Rows, t.Cols, t.Bits, t.Group,
			[]string{"", "f32", "f16"}[t.ScaleType], t.Block, t.Tier, len(t.Codes), len(t.Scales), t.CodesOffset})
	}
	return info, nil
}

func (i *imageInfo) print(w io.Writer) error {
	var b strings.Builder
	s := &i.Sizes
	fmt.Fprintf(&b, "%s:\nimage version %d, %s bytes, CRC-32 %s, %s parameters\n\n", i.File, i.Version, digits.Comma(i.Bytes), i.CRC, digits.Comma(i.Params))
	fmt.Fprintf(&b, "vocab_size %d, d_model %d, n_layers %d, n_heads %d, d_ff %d,\ncontext_length %d, ple_dim %d, experts %d\n",
		s.VocabSize, s.DModel, s.NLayers, s.NHeads, s.DFF, s.ContextLength, s.PLEDim, s.Experts)
	fmt.Fprintf(&b, "activation %s, tied head %v, qk_norm %v, norm_eps %g, score scale %g\n",
		s.Activation, s.TiedHead, s.QKNorm, s.NormEps, s.ScoreScale)
	if s.NgramRows > 0 {
		fmt.Fprintf(&b, "a bigram table of %s rows\n", digits.Comma(s.NgramRows))
	}
	if s.Clusters > 0 {
		fmt.Fprintf(&b, "the head's rows lie in %d clusters, so that it can be read in part\n", s.Clusters)
	}
	fmt.Fprintf(&b, "model     %s\ntokenizer %s\n\n", i.Model, i.TokHash)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "section\toffset\tbytes\tcrc32\t")
	for _, x := range i.Sections {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t\n", x.Name, digits.Comma(x.Offset), digits.Comma(x.Bytes), x.CRC)
	}
	tw.Flush()
	fmt.Fprintln(&b)
	tw = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "tensor\tshape\tbits\tgroup\tscales\ttier\tcodes\tscales\toffset")
	for _, t := range i.Tensors {
		group, scale := fmt.Sprint(t.Group), t.Scale
		if t.Group == 0 {
			group = "row"
		}
		if t.Scale == "" {
			group, scale = "-", "-"
		}
		shape := fmt.Sprintf("%d x %d", t.Rows, t.Cols)
		if t.Block > 0 {
			shape += " by column"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Name, shape, t.Bits, group, scale, t.Tier,
			digits.Comma(t.Codes), digits.Comma(t.Scales), digits.Comma(t.Offset))
	}
	tw.Flush()
	t := &i.Tokenizer
	if t.Kind == image.NoTokenizer {
		fmt.Fprintf(&b, "\ntokenizer: none; tokens stand for no text that is known, and only their ids can be used\n")
	} else {
		fmt.Fprintf(&b, "\ntokenizer: %s, %s entries, %s merges, end-of-text %d\n", t.Kind, digits.Comma(t.Entries), digits.Comma(t.Merges), t.EOT)
	}
	g := &i.Golden
	fmt.Fprintf(&b, "golden: digest %s over the logits of %d tokens\n", g.Digest, len(g.Prompt))
	if t.Kind == image.NoTokenizer {
		fmt.Fprintf(&b, "  prompt: %s\n  then most likely: %s\n", shortIDs(g.Prompt), shortIDs(g.ids()))
	} else {
		// A model's own tokens may be of any length: each stands on a line, cut to the width.
		fmt.Fprintf(&b, "  prompt: %s\n  then most likely:\n", short(g.Text, 88))
		for _, t := range g.Top {
			fmt.Fprintf(&b, "    %s\n", short(t.Text, 94))
		}
	}
	fmt.Fprintf(&b, "\nconfiguration:\n%s", i.Config)
	_, err := io.WriteString(w, b.String())
	return err
}

// shortIDs lists the first ids.
func shortIDs(ids []uint32) string {
	if len(ids) <= 8 {
		return fmt.Sprint(ids)
	}
	return strings.TrimSuffix(fmt.Sprint(ids[:8]), "]") + " ...]"
}

// short quotes a text, cut to at most n characters.
func short(text string, n int) string {
	if q := fmt.Sprintf("%q", text); utf8.RuneCountInString(q) <= n {
		return q
	}
	r := []rune(text)
	for len(r) > 0 {
		r = r[:len(r)-1]
		if q := fmt.Sprintf("%q...", string(r)); utf8.RuneCountInString(q) <= n {
			return q
		}
	}
	return "..."
}
