package eval

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/usage"
	"github.com/chiplm/chiplm/engine"
)

// SampleOptions say how a model writes.
type SampleOptions struct {
	Prompt      string
	Tokens      int     // at most so many new tokens; 0: until the story or the context ends
	Temperature float64 // 0: always the likeliest token
	TopK        int     // choose among so many likeliest tokens
	Seed        uint64
}

// Text is what a model wrote.
type Text struct {
	Model   string  `json:"model"`
	Prompt  string  `json:"prompt"`
	Text    string  `json:"text"` // without the prompt
	Tokens  int     `json:"tokens"`
	Stopped string  `json:"stopped"` // "end-of-text", "tokens" or "context"
	Seconds float64 `json:"seconds"`
}

// sample lets the engine write from a prompt. The text goes to w as it comes, in whole UTF-8 characters.
func sample(ctx context.Context, s *subject, opt SampleOptions, w io.Writer) (Text, error) {
	vocab, room := s.config.VocabSize, s.config.ContextLength
	ids := s.tokenizer.Encode([]int32{s.tokenizer.EOT()}, []byte(opt.Prompt))
	if len(ids) > room {
		return Text{}, fmt.Errorf("the prompt is %d tokens with its leading end-of-text, and %s has a context of %d; shorten the prompt",
			len(ids), s.name, room)
	}
	e, err := engine.New(s.image, engine.Options{Batch: scoreBatch})
	if err != nil {
		return Text{}, err
	}
	defer e.Close()

	start := time.Now()
	out := Text{Model: s.name, Prompt: opt.Prompt, Stopped: "context"}
	var text bytes.Buffer
	stream := bpe.NewStream(s.tokenizer)
	both := io.MultiWriter(&text, w)
	rng := engine.RNG(opt.Seed)
	logits := make([]float32, vocab)
	for used := len(ids); ; used++ {
		if err := ctx.Err(); err != nil {
			return Text{}, err
		}
		if err := e.ForwardLast(ids, logits); err != nil {
			return Text{}, err
		}
		id, err := engine.Sample(logits, float32(opt.Temperature), opt.TopK, &rng)
		if err != nil {
			return Text{}, err
		}
		if id == s.tokenizer.EOT() {
			out.Stopped = "end-of-text"
			break
		}
		out.Tokens++
		if _, err := io.WriteString(both, stream.Push(id)); err != nil {
			return Text{}, err
		}
		if out.Tokens == opt.Tokens {
			out.Stopped = "tokens"
			break
		}
		if used == room {
			break
		}
		ids = append(ids[:0], id)
	}
	if _, err := io.WriteString(both, stream.Flush()); err != nil {
		return Text{}, err
	}
	out.Text = text.String()
	out.Seconds = math.Round(time.Since(start).Seconds()*1000) / 1000
	return out, nil
}

// SampleCommand is `chiplm sample`.
func SampleCommand() *cobra.Command {
	var (
		opt    SampleOptions
		runs   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "sample [MODEL]",
		Short: "Let a model write a story",
		Long: `Lets the C engine write with a model's quantised weights, word for word as the chip will with the
same seed. MODEL is a run, a checkpoint, an image, or a folder that export wrote; without one, the
newest checkpoint of all runs writes. The story ends with end-of-text or with the context.`,
		Example: `  chiplm sample --prompt "Once upon a time, there was a frog"
  chiplm sample combo --temperature 0
  chiplm sample esp32s3/model.clm --seed 7 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(opt.Temperature >= 0 && opt.Temperature <= 100) { // also refuses NaN
				return usage.Errorf("--temperature %g is not between 0 and 100", opt.Temperature)
			}
			if opt.TopK < 1 || opt.Tokens < 0 {
				return usage.Errorf("--topk must be 1 or more, and --tokens 0 (no limit) or more")
			}
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			s, err := openSubject(cmd.Context(), path, runs, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer s.close()
			out := cmd.OutOrStdout()
			if asJSON {
				text, err := sample(cmd.Context(), s, opt, io.Discard)
				if err != nil {
					return err
				}
				return jsonout.Write(out, text)
			}
			if _, err := io.WriteString(out, opt.Prompt); err != nil {
				return err
			}
			_, err = sample(cmd.Context(), s, opt, out)
			if _, e := io.WriteString(out, "\n"); err == nil {
				err = e
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Prompt, "prompt", "", "the start of the story")
	f.IntVar(&opt.Tokens, "tokens", 0, "write at most `N` tokens; 0: to the end of the story or of the context")
	f.Float64Var(&opt.Temperature, "temperature", 0.7, "0 takes the likeliest token; higher is livelier")
	f.IntVar(&opt.TopK, "topk", 40, "choose among the `K` likeliest tokens")
	f.Uint64Var(&opt.Seed, "seed", 1, "the same seed writes the same story")
	f.StringVar(&runs, "runs", "checkpoints/runs", "where the newest run is looked for")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
