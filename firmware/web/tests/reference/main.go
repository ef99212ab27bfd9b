// Command reference answers for the Go binding of the engine and the tokenizer of the trainer, to which the tests of the page
// hold the engine in the browser. It is called with an image, and answers a line for each line on standard input:
//
//	encode HEX                                  the ids of a text, by the tokenizer of the trainer
//	write THOUSANDTHS TOP_K SEED TOKENS HEX     the ids that follow a text, temperature in thousandths
//	digest N                                    the digest of N tokens, the likeliest each
//	flip OFFSET MASK                            ok, or the sentence that refuses the image with this byte changed
//	cut BYTES                                   the same of the image's first bytes
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chiplm/chiplm/data/bpe"
	"github.com/chiplm/chiplm/engine"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("name an image")
	}
	r, err := open(args[0])
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	w := bufio.NewWriter(out)
	for lines.Scan() {
		answer, err := r.answer(strings.Split(lines.Text(), " "))
		if err != nil {
			return fmt.Errorf("%.80q: %w", lines.Text(), err)
		}
		if _, err := fmt.Fprintln(w, answer); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// reference is an image with what answers for it.
type reference struct {
	bytes []byte
	image *engine.Image
	tok   *bpe.Tokenizer // nil until a text needs it: an image may have none
}

func open(path string) (*reference, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	im, err := engine.NewImage(b)
	if err != nil {
		return nil, err
	}
	return &reference{bytes: b, image: im}, nil
}

func (r *reference) answer(words []string) (string, error) {
	command, fields := words[0], words[1:]
	numbers := make([]uint64, 0, len(fields))
	var text []byte
	for i, f := range fields {
		if (command == "encode" || command == "write") && i == len(fields)-1 {
			b, err := hex.DecodeString(f)
			if err != nil {
				return "", err
			}
			text = b
			continue
		}
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return "", err
		}
		numbers = append(numbers, n)
	}
	switch {
	case command == "encode" && len(fields) == 1:
		return r.encode(text)
	case command == "write" && len(fields) == 5:
		return r.write(float32(numbers[0])/1000, int(numbers[1]), engine.RNG(numbers[2]), int(numbers[3]), text)
	case command == "digest" && len(fields) == 1:
		return r.digest(int(numbers[0]))
	case command == "flip" && len(fields) == 2:
		b := slices.Clone(r.bytes)
		b[numbers[0]] ^= byte(numbers[1])
		return refusal(b), nil
	case command == "cut" && len(fields) == 1:
		return refusal(r.bytes[:numbers[0]]), nil
	}
	return "", errors.New("no such command, or other fields than it has")
}

// refusal is the engine's sentence on an image that it does not accept, without the place.
func refusal(b []byte) string {
	im, err := engine.NewImage(b)
	if err == nil {
		_ = im.Close()
		return "ok"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

func (r *reference) tokenizer() (*bpe.Tokenizer, error) {
	if r.tok == nil {
		tok, err := bpe.FromImage(r.image.Tokenizer())
		if err != nil {
			return nil, err
		}
		r.tok = tok
	}
	return r.tok, nil
}

func (r *reference) encode(text []byte) (string, error) {
	tok, err := r.tokenizer()
	if err != nil {
		return "", err
	}
	return listed(tok.Encode(nil, text)), nil
}

// write draws as the request S of firmware/PROTOCOL.md does, from all logits.
func (r *reference) write(temperature float32, topK int, seed engine.RNG, tokens int, text []byte) (string, error) {
	tok, err := r.tokenizer()
	if err != nil {
		return "", err
	}
	e, err := engine.New(r.image, engine.Options{Batch: 8})
	if err != nil {
		return "", err
	}
	defer e.Close()
	var out []int32
	logits := make([]float32, r.image.Model().VocabSize)
	for next := tok.Encode([]int32{tok.EOT()}, text); ; next = out[len(out)-1:] {
		if err := e.ForwardLast(next, logits); err != nil {
			return "", err
		}
		id, err := engine.Sample(logits, temperature, topK, &seed)
		if err != nil {
			return "", err
		}
		if id == r.image.EndOfText() {
			return listed(out), nil
		}
		out = append(out, id)
		if len(out) == tokens || e.Position() == r.image.Model().ContextLength {
			return listed(out), nil
		}
	}
}

func (r *reference) digest(n int) (string, error) {
	e, err := engine.New(r.image, engine.Options{Batch: 1})
	if err != nil {
		return "", err
	}
	defer e.Close()
	d, id := engine.NewDigest(), r.image.EndOfText()
	logits := make([]float32, r.image.Model().VocabSize)
	for p := range n {
		if err := e.ForwardLast([]int32{id}, logits); err != nil {
			return "", err
		}
		d = d.Add(p, id, logits)
		if id, err = engine.ArgMax(logits); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("0x%016x", uint64(d)), nil
}

func listed(ids []int32) string { return strings.Trim(fmt.Sprint(ids), "[]") }
