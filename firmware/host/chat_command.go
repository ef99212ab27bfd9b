package host

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/firmware/host/line"
)

// ChatCommand is `chiplm chat`.
func ChatCommand() *cobra.Command {
	var name, model, runs string
	var ids, remarks, asJSON bool
	how := line.Sampling{Tokens: 200, Temperature: 0.7, TopK: 40, Seed: 1}
	c := &cobra.Command{
		Use:   "chat [PROMPT]",
		Short: "Let a board write, over its serial port",
		Long: `Lets the model on a board go on from a prompt. The text comes as the board writes it, then a line
with the time of the prompt and of a token. Without PROMPT, prompts are read line by line from a
terminal; from a pipe or a file, all of it is one prompt, which must not be empty. An empty
PROMPT lets the board begin a text by itself.

The board encodes the prompt itself. With --ids this machine does, with the tokenizer of the image
that --model names, whose hashes must be those of the one on the board. The same seed gives the same
text, on the board and in chiplm sample. Ctrl-C stops an answer; once more, it ends the program.`,
		Example: `  chiplm chat "Once upon a time"
  chiplm chat --port /dev/ttyACM0 --temperature 0 --tokens 50 "The frog"
  chiplm chat --ids --model exports/combo-esp32s3/model.clm --json "One day"`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if how.Temperature, err = usage.Temperature(how.Temperature); err != nil {
				return err
			}
			if how.Tokens < 1 || how.Tokens > line.MostTokens {
				return usage.Errorf("--tokens %d is not between 1 and %d", how.Tokens, line.MostTokens)
			}
			if err := usage.TopK(how.TopK); err != nil {
				return err
			}
			if ids != (model != "") {
				return usage.Errorf("--ids and --model belong together: the tokenizer is that of the image")
			}
			in, terminal := cmd.InOrStdin(), false
			if f, ok := in.(*os.File); ok {
				terminal = term.IsTerminal(int(f.Fd()))
			}
			interactive := len(args) == 0 && terminal
			if interactive && asJSON {
				return usage.Errorf("--json answers one prompt: give it as an argument, or on standard input")
			}
			var prompt string
			switch {
			case len(args) == 1:
				prompt = args[0]
			case !interactive:
				if prompt, err = readPrompt(in); err != nil {
					return err
				}
				if prompt == "" {
					return usage.Errorf("standard input holds no prompt: give one, there or as an argument; an empty argument (\"\") lets the board begin a text by itself")
				}
			}
			c := &chat{how: how, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
			if ids {
				im, err := openModel(cmd.Context(), runs, model, c.errs)
				if err != nil {
					return err
				}
				defer im.Close()
				c.model = im
			}
			if c.client, c.port, err = connect(cmd.Context(), name, remarks, c.errs); err != nil {
				return err
			}
			defer c.client.Close()
			if ids {
				if err := sameModel(cmd.Context(), c.client, c.model, model); err != nil {
					return onPort(c.port, err)
				}
			}
			c.stops = newInterrupts(cmd.Context())
			defer c.stops.end()
			switch {
			case interactive:
				err = c.talk(in)
			case asJSON:
				c.out = io.Discard
				var a *Answer
				if a, err = c.write(prompt, ""); err == nil {
					if err = jsonout.Write(cmd.OutOrStdout(), a); err == nil {
						err = a.lost()
					}
				}
			default:
				_, err = c.once(prompt)
			}
			if errors.Is(err, errInterrupted) {
				return cmd.Context().Err()
			}
			return err
		},
	}
	addPort(c, &name)
	f := c.Flags()
	f.IntVar(&how.Tokens, "tokens", how.Tokens, "write at most `N` tokens")
	f.Float64Var(&how.Temperature, "temperature", how.Temperature, "0 takes the likeliest token; higher is livelier; steps of 0.001")
	usage.AddTopK(f, &how.TopK, how.TopK)
	f.Uint64Var(&how.Seed, "seed", how.Seed, "the same seed writes the same text")
	f.BoolVar(&ids, "ids", false, "encode the prompt on this machine; with --model")
	f.StringVar(&model, "model", "", "the board's model, whose tokenizer --ids uses: "+modelHelp)
	addRuns(c, &runs)
	f.BoolVar(&remarks, "remarks", false, "show what the board prints beside its answers")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
