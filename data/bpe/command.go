package bpe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/chiplm/chiplm/data/jsonout"
	"github.com/chiplm/chiplm/data/regular"
	"github.com/chiplm/chiplm/data/usage"
)

// Corpus is the part of a corpus that training needs: it calls f for every story, whose bytes are valid during the
// call, and stops at the first error.
type Corpus interface {
	Stories(ctx context.Context, f func(story []byte) error) error
}

// Command returns `chiplm tokenizer` with its subcommands. open finds the corpus that a path names; it is a parameter
// because packages that know corpora build on this one.
func Command(open func(path string) (Corpus, error)) *cobra.Command {
	c := &cobra.Command{
		Use:   "tokenizer",
		Short: "Train tokenizers and use them",
		Long: `Train byte-level BPE tokenizers, encode and decode with them, and look inside.

A tokenizer is a Hugging Face tokenizer.json. Training is deterministic: the same
stories give the same file, which is the one that Hugging Face's trainer gives.`,
		Example: `  chiplm tokenizer train stories.txt --size 4096 -o tokenizer.json
  chiplm tokenizer info tokenizer.json held-out.txt`,
	}
	c.AddCommand(trainCommand(open), encodeCommand(), decodeCommand(), infoCommand(open))
	return c
}

// count is what reading corpora came to.
type count struct {
	Stories int64 `json:"stories"`
	Bytes   int64 `json:"bytes"`
}

// readAll goes through the stories of several corpora and reports each of them as it comes.
func readAll(cmd *cobra.Command, open func(string) (Corpus, error), paths []string, n *count, f func([]byte) error) error {
	for _, path := range paths {
		corpus, err := open(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "reading %s\n", path)
		err = corpus.Stories(cmd.Context(), func(story []byte) error {
			n.Stories++
			n.Bytes += int64(len(story))
			return f(story)
		})
		if cause := cmd.Context().Err(); cause != nil && errors.Is(err, cause) {
			return fmt.Errorf("reading %s was stopped: run the same command again (%w)", path, cause)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	return nil
}

func trainCommand(open func(string) (Corpus, error)) *cobra.Command {
	var size int
	var output string
	var asJSON bool
	c := &cobra.Command{
		Use:   "train CORPUS...",
		Short: "Learn a vocabulary from text",
		Long: `Learn a byte-level BPE vocabulary from one or more corpora and write it as a
Hugging Face tokenizer.json.

The size counts the end-of-text token, the 256 bytes and the merges, and must be
the vocab_size of the model to be trained. Every byte string can be encoded,
whatever the corpus holds.`,
		Example: `  chiplm tokenizer train tinystories-train.txt --size 4096 -o tokenizer.json
  chiplm tokenizer train a.jsonl b.txt --size 1024 -o small.json --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := regular.KeepInput(output, args...); err != nil {
				return usage.Errorf("-o %w", err)
			}
			var n count
			start := time.Now()
			tok, err := Train(cmd.Context(), func(yield func([]byte) error) error {
				return readAll(cmd, open, args, &n, yield)
			}, size)
			if cause := cmd.Context().Err(); cause != nil && errors.Is(err, cause) {
				return fmt.Errorf("training the tokenizer was stopped, and nothing was written: run the same command again (%w)",
					cause)
			}
			if err != nil {
				return err
			}
			if err := tok.Save(output); err != nil {
				return err
			}
			seconds := time.Since(start).Seconds()
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), struct {
					Path    string  `json:"path"`
					Size    int     `json:"size"`
					SHA256  string  `json:"sha256"`
					Seconds float64 `json:"seconds"`
					count
				}{output, tok.Size(), tok.Hash(), seconds, n})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d entries from %d stories (%d bytes) in %.1f s\n",
				output, tok.Size(), n.Stories, n.Bytes, seconds)
			return nil
		},
	}
	c.Flags().IntVar(&size, "size", 4096, "entries of the vocabulary, at least 257")
	c.Flags().StringVarP(&output, "output", "o", "tokenizer.json", "file to write")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func encodeCommand() *cobra.Command {
	var text string
	var asJSON bool
	c := &cobra.Command{
		Use:   "encode [FILE]",
		Short: "Turn text into token ids",
		Long: `Turn a file, standard input, or --text into token ids, separated by spaces.

No end-of-text token is added, and <|endoftext|> in the text is plain text.`,
		Example: `  chiplm tokenizer encode --text "Once upon a time"
  chiplm tokenizer encode -t small.json story.txt --json`,
		Args: cobra.MaximumNArgs(1),
	}
	tokenizer := AddFlag(c)
	c.Flags().StringVar(&text, "text", "", "text to encode, in place of a file")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		tok, _, err := tokenizer()
		if err != nil {
			return err
		}
		input := []byte(text)
		if cmd.Flags().Changed("text") {
			if len(args) > 0 {
				return usage.Errorf("both --text and the file %s are given: leave one of them out", args[0])
			}
		} else if input, err = readInput(cmd, args); err != nil {
			return err
		}
		ids := tok.Encode([]int32{}, input)
		if asJSON {
			return jsonout.Write(cmd.OutOrStdout(), struct {
				Bytes  int     `json:"bytes"`
				Tokens int     `json:"tokens"`
				IDs    []int32 `json:"ids"`
			}{len(input), len(ids), ids})
		}
		line := make([]byte, 0, 6*len(ids)+1)
		for i, id := range ids {
			if i > 0 {
				line = append(line, ' ')
			}
			line = strconv.AppendInt(line, int64(id), 10)
		}
		_, err = cmd.OutOrStdout().Write(append(line, '\n'))
		return err
	}
	return c
}

// readInput reads the named file, or standard input. Either may be a pipe that never ends, so that an interrupt ends the
// wait though the read goes on.
func readInput(cmd *cobra.Command, args []string) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		if len(args) == 0 || args[0] == "-" {
			b, err := io.ReadAll(cmd.InOrStdin())
			if err != nil {
				err = fmt.Errorf("read standard input: %w", err)
			}
			done <- result{b, err}
			return
		}
		b, err := os.ReadFile(args[0])
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-cmd.Context().Done():
		return nil, cmd.Context().Err()
	}
}

func decodeCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "decode [ID...]",
		Short: "Turn token ids into text",
		Long: `Turn token ids, given as arguments or on standard input and separated by spaces,
commas or line ends, into the bytes they stand for. The end-of-text token stands
for none. With --json, "text" has U+FFFD in place of bytes that are not UTF-8, and
"base64" has the bytes as they are.`,
		Example: `  chiplm tokenizer decode 413 266 257
  chiplm tokenizer encode story.txt | chiplm tokenizer decode`,
	}
	tokenizer := AddFlag(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		tok, _, err := tokenizer()
		if err != nil {
			return err
		}
		input := strings.Join(args, " ")
		if len(args) == 0 {
			b, err := readInput(cmd, nil)
			if err != nil {
				return err
			}
			input = string(b)
		}
		ids, err := parseIDs(tok, input)
		if err != nil {
			return err
		}
		text := tok.Decode([]byte{}, ids)
		if asJSON {
			return jsonout.Write(cmd.OutOrStdout(), struct {
				Tokens int    `json:"tokens"`
				Text   string `json:"text"`
				Base64 []byte `json:"base64"`
			}{len(ids), string(text), text})
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	return c
}

func parseIDs(tok *Tokenizer, input string) ([]int32, error) {
	var ids []int32
	for i, field := range strings.FieldsFunc(input, func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }) {
		id, err := strconv.ParseInt(field, 10, 32)
		if err != nil || id < 0 || id >= int64(tok.Size()) {
			return nil, fmt.Errorf("id %d of the input, %q, is no token: this vocabulary has the ids 0 to %d",
				i+1, field, tok.Size()-1)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}

func infoCommand(open func(string) (Corpus, error)) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info [TOKENIZER [CORPUS...]]",
		Short: "Show a tokenizer, and how well it fits a text",
		Long: `Show the size, hash and longest entry of a tokenizer.json (default: tokenizer.json).
With corpora, also count their tokens: more bytes per token is better. With
--tokenizer every argument is a corpus.`,
		Example: `  chiplm tokenizer info
  chiplm tokenizer info tokenizer.json tinystories-valid.txt --json
  chiplm tokenizer info -t checkpoints/runs/combo/tokenizer.json tinystories-valid.txt`,
	}
	tokenizer := AddFlag(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("tokenizer") && len(args) > 0 {
			if err := cmd.Flags().Set("tokenizer", args[0]); err != nil {
				return err
			}
			args = args[1:]
		}
		tok, path, err := tokenizer()
		if err != nil {
			return err
		}
		info := describe(tok, path)
		if len(args) > 0 {
			if err := info.measure(cmd, open, tok, args); err != nil {
				return err
			}
		}
		if asJSON {
			return jsonout.Write(cmd.OutOrStdout(), info)
		}
		return info.print(cmd.OutOrStdout())
	}
	return c
}

type info struct {
	Path      string `json:"path"`
	Size      int    `json:"size"`
	Merges    int    `json:"merges"`
	EndOfText int32  `json:"end_of_text"`
	Longest   string `json:"longest"`
	SHA256    string `json:"sha256"`
	Fit       *fit   `json:"fit,omitempty"`
}

// fit says how a tokenizer fits a text. The end-of-text tokens between stories are not counted.
type fit struct {
	count
	Tokens        int64   `json:"tokens"`
	BytesPerToken float64 `json:"bytes_per_token"`
}

func describe(tok *Tokenizer, path string) *info {
	longest := []byte(nil)
	for _, e := range tok.entries {
		if len(e) > len(longest) {
			longest = e
		}
	}
	return &info{
		Path: path, Size: tok.Size(), Merges: tok.Merges(), EndOfText: tok.EOT(),
		Longest: string(longest), SHA256: tok.Hash(),
	}
}

func (i *info) measure(cmd *cobra.Command, open func(string) (Corpus, error), tok *Tokenizer, paths []string) error {
	i.Fit = &fit{}
	var ids []int32
	err := readAll(cmd, open, paths, &i.Fit.count, func(story []byte) error {
		ids = tok.Encode(ids[:0], story)
		i.Fit.Tokens += int64(len(ids))
		return nil
	})
	if err != nil {
		return err
	}
	if i.Fit.Tokens > 0 {
		i.Fit.BytesPerToken = float64(i.Fit.Bytes) / float64(i.Fit.Tokens)
	}
	return nil
}

func (i *info) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "tokenizer\t%s\n", i.Path)
	fmt.Fprintf(t, "entries\t%d\n", i.Size)
	fmt.Fprintf(t, "merges\t%d\n", i.Merges)
	fmt.Fprintf(t, "end of text\t%d\n", i.EndOfText)
	fmt.Fprintf(t, "longest entry\t%q\n", i.Longest)
	fmt.Fprintf(t, "SHA-256\t%s\n", i.SHA256)
	if i.Fit != nil {
		fmt.Fprintf(t, "stories\t%d\n", i.Fit.Stories)
		fmt.Fprintf(t, "bytes\t%d\n", i.Fit.Bytes)
		fmt.Fprintf(t, "tokens\t%d\n", i.Fit.Tokens)
		fmt.Fprintf(t, "bytes per token\t%.4f\n", i.Fit.BytesPerToken)
	}
	return t.Flush()
}
