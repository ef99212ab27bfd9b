package host

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/firmware/host/line"
)

// modes are the ways in which a board computes a digest, by the numbers of the protocol.
var modes = [line.ModesCount]struct{ name, what string }{
	{"both", "both cores, fastest kernels"}, {"one", "one core, fastest kernels"}, {"plain", "one core, plain C"},
}

// digests is what the command prints.
type digests struct {
	Port   string       `json:"port,omitempty"`
	Model  string       `json:"model,omitempty"`
	Tokens int          `json:"tokens"`
	Host   string       `json:"host,omitempty"`
	Board  []modeDigest `json:"board,omitempty"`
	Equal  *bool        `json:"equal,omitempty"` // nil: there was nothing to compare with
}

type modeDigest struct {
	Mode   string `json:"mode"`
	Digest string `json:"digest"`
	what   string
}

func digestCommand() *cobra.Command {
	var name, model, mode, runs string
	var asJSON, alone bool
	r := digests{Tokens: DigestTokens}
	c := &cobra.Command{
		Use:   "digest",
		Short: "Prove that a board computes the host's bits",
		Long: `Prints a board's digest of a run: tokens from end-of-text on, the likeliest each, and the bits of
all their logits. It is the same on both cores, on one, and in plain C; with --model, the model
that is on the board, it is also compared with that of the engine on this machine. The exit status
is 1 if any of them differs.

With --no-board, it prints that of the engine on this machine alone: what the page of chiplm page
calls the reference. It is one of the model's weights, however an image lays them out.`,
		Example: `  chiplm board digest --model exports/combo-esp32s3/model.clm
  chiplm board digest --tokens 200 --mode plain
  chiplm board digest --model combo --no-board`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Tokens < 1 {
				return usage.Errorf("--tokens %d: 1 or more", r.Tokens)
			}
			if alone {
				for _, flag := range []string{"port", "mode"} {
					if cmd.Flags().Changed(flag) {
						return usage.Errorf("--%s is of a board: leave it or --no-board out", flag)
					}
				}
				if model == "" {
					return usage.Errorf("--no-board prints the digest of a model on this machine: name it with --model")
				}
			}
			which, err := modesOf(mode)
			if err != nil {
				return err
			}
			if model != "" {
				im, err := openModel(cmd.Context(), runs, model, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				defer im.Close()
				r.Tokens = fitted(cmd, r.Tokens, im.Model().ContextLength)
				d, err := Digest(im, r.Tokens)
				if err != nil {
					return fmt.Errorf("%s: %w", model, err)
				}
				r.Model, r.Host = model, hex(uint64(d))
			}
			if alone {
				return r.tell(cmd.OutOrStdout(), asJSON)
			}
			client, found, err := connect(cmd.Context(), name, false, nil)
			if err != nil {
				return err
			}
			defer client.Close()
			m, err := modelOf(cmd.Context(), client)
			if err == nil && m != nil {
				r.Tokens = fitted(cmd, r.Tokens, m.Context)
				err = withinContext(r.Tokens, m.Context)
			}
			if err != nil {
				return onPort(found, err)
			}
			r.Port, r.Board = found, nil
			for _, m := range which {
				d, err := client.Digest(cmd.Context(), r.Tokens, m)
				if err != nil {
					return onPort(found, err)
				}
				r.Board = append(r.Board, modeDigest{modes[m].name, hex(d), modes[m].what})
			}
			differs := r.compare()
			if err := r.tell(cmd.OutOrStdout(), asJSON); err != nil {
				return err
			}
			return differs
		},
	}
	addPort(c, &name)
	c.Flags().StringVar(&model, "model", "", "the board's model, to compare with: "+modelHelp)
	c.Flags().BoolVar(&alone, "no-board", false, "print the digest of --model on this machine, and ask no board")
	addRuns(c, &runs)
	c.Flags().IntVar(&r.Tokens, "tokens", r.Tokens, "length of the run, at most the context of the model; without it, no more than that")
	c.Flags().StringVar(&mode, "mode", "all", "both (cores), one, plain (C), or all three")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// DigestTokens are the tokens of a digest by which engines are compared, where the context has so many: those of the page, too.
const DigestTokens = 64

// fitted is the length of a run that nobody asked for: it ends with the context.
func fitted(cmd *cobra.Command, tokens, context int) int {
	if cmd.Flags().Changed("tokens") {
		return tokens
	}
	return min(tokens, context)
}

// tell prints it all.
func (r *digests) tell(w io.Writer, asJSON bool) error {
	if asJSON {
		return jsonout.Write(w, r)
	}
	return r.print(w)
}

func modesOf(name string) ([]int, error) {
	if name == "all" {
		return []int{line.ModeFast, line.ModeOne, line.ModePlain}, nil
	}
	for i, m := range modes {
		if m.name == name {
			return []int{i}, nil
		}
	}
	return nil, usage.Errorf("--mode %q: both, one, plain or all", name)
}

func hex(d uint64) string { return fmt.Sprintf("0x%016x", d) }

// compare says whether all digests are equal, where there is more than one.
func (r *digests) compare() error {
	want, by := r.Host, "the host"
	if want == "" {
		want, by = r.Board[0].Digest, r.Board[0].what
	}
	equal := true
	var err error
	for _, b := range r.Board {
		if b.Digest != want && err == nil {
			equal = false
			err = fmt.Errorf("%w", ErrDiffers)
			if r.Host == "" {
				err = fmt.Errorf("the board differs from itself")
			}
			err = fmt.Errorf("%w: %s over %d tokens by %s, %s by %s; is this image the one on the board? Flash both again with chiplm flash", err, want, r.Tokens, by, b.Digest, b.what)
		}
	}
	if r.Host != "" || len(r.Board) > 1 {
		r.Equal = &equal
	}
	return err
}

func (r *digests) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "digest of %d tokens\tby\n", r.Tokens)
	if r.Host != "" {
		fmt.Fprintf(t, "%s\tthe engine on this machine\n", r.Host)
	}
	for _, b := range r.Board {
		fmt.Fprintf(t, "%s\tthe board: %s\n", b.Digest, b.what)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Equal == nil {
		return nil
	}
	_, err := fmt.Fprintln(w, map[bool]string{true: "equal", false: "NOT EQUAL"}[*r.Equal])
	return err
}
