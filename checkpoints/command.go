package checkpoints

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
)

// Command is chiplm checkpoint.
func Command() *cobra.Command {
	group := &cobra.Command{
		Use:   "checkpoint",
		Short: "Look at stored models",
		Long:  "Look at checkpoints: what a run has stored, and how two of them differ.",
	}
	group.AddCommand(infoCommand())
	return group
}

func infoCommand() *cobra.Command {
	var asJSON bool
	var root string
	cmd := &cobra.Command{
		Use:   "info [A [B]]",
		Short: "Show a checkpoint, or how two differ",
		Long: `Show what a checkpoint holds: the model, where its training stands, the hashes of everything
that went into it, and for each tensor its shape, bits per weight and columns per scale, mean,
root mean square, largest absolute value, and how many values are not finite.

With two checkpoints, show how they differ: the keys of the model file, and for each tensor the
largest and the root-mean-square difference, and how many values changed. Differences are no
error.

A and B are checkpoints, runs, or names of runs under --runs; of a run the newest complete
checkpoint is taken. Without A it is the newest of all runs.
Every file is checked against the hash stored with it.`,
		Example: `  chiplm checkpoint info
  chiplm checkpoint info combo
  chiplm checkpoint info combo/step-00000200 combo
  chiplm checkpoint info --json elsewhere/combo`,
		Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return Runs(root), cobra.ShellCompDirectiveDefault // or a path
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{""}
			}
			var loaded []*Checkpoint
			var shown []summary
			for _, name := range args {
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				path, err := Resolve(root, name)
				if err != nil {
					return err
				}
				c, err := Load(path)
				if err != nil {
					return err
				}
				for _, note := range c.Notes {
					fmt.Fprintln(cmd.ErrOrStderr(), "note:", note)
				}
				shown = append(shown, summarise(c))
				c.Moments = nil // two thirds of the memory, and no longer needed
				loaded = append(loaded, c)
			}
			out := struct {
				A           summary     `json:"a"`
				B           *summary    `json:"b,omitempty"`
				Differences *Comparison `json:"differences,omitempty"`
			}{A: shown[0]}
			if len(loaded) == 2 {
				comparison, err := Compare(loaded[0], loaded[1])
				if err != nil {
					return err
				}
				out.B, out.Differences = &shown[1], comparison
			}
			w := cmd.OutOrStdout()
			if asJSON {
				return jsonout.Write(w, out)
			}
			if out.B == nil {
				return printInfo(w, out.A)
			}
			return printComparison(w, out.A, *out.B, out.Differences)
		},
	}
	cmd.Flags().StringVar(&root, "runs", DefaultRoot, "folder of the runs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// summary is a checkpoint without its values.
type summary struct {
	Dir         pathText      `json:"dir"`
	Parameters  int           `json:"parameters"`
	ConfigText  string        `json:"config"`
	State       State         `json:"state"`
	ModelSHA256 string        `json:"model_sha256"`
	Optimiser   bool          `json:"optimiser"` // training can go on from here
	Tensors     []TensorStats `json:"tensors"`

	model, quant []string
}

func summarise(c *Checkpoint) summary {
	s := summary{Dir: pathText(c.Dir), Parameters: c.Config.Parameters(), State: c.State, ModelSHA256: c.ModelSHA256, Optimiser: c.Moments != nil, Tensors: c.Stats()}
	if text, err := c.Config.YAML(); err == nil { // it was read from YAML, so it has a form in YAML
		s.ConfigText = string(text)
	}
	s.model, s.quant = describe(c.Config)
	return s
}
