package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"testing"
)

// twinVariable makes the test program behave as an opponent does. Its value names a fault, or is "sound".
const twinVariable = "CHIPLM_TEST_RUNQ"

func TestMain(m *testing.M) {
	fault := os.Getenv(twinVariable)
	if fault == "" {
		os.Exit(m.Run())
	}
	if err := twin(os.Args, fault, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// twin reads a model file and decodes from token 1 as Llama 2 does, in float64 and without quantised activations. It
// prints what an opponent prints.
func twin(args []string, fault string, stdout, stderr io.Writer) error {
	if len(args) != 10 || args[2] != "-t" || args[3] != "0" || args[4] != "-n" || args[8] != "-z" || os.Getenv("OMP_NUM_THREADS") != "1" {
		return fmt.Errorf("unexpected: %q", args)
	}
	file, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	if _, err := os.Stat(args[9]); err != nil {
		return err
	}
	c, err := readContents(file)
	if err != nil {
		return err
	}
	steps := 0
	if _, err := fmt.Sscan(args[5], &steps); err != nil || steps != c.context {
		return fmt.Errorf("steps %q of %d", args[5], c.context)
	}
	run := decoding{contents: c, halves: fault == "other network", keys: make([][][]float64, c.layers), values: make([][][]float64, c.layers)}
	token := 1
	for position := range steps {
		token = run.next(token, position)
		if token == 1 || fault == "stops" && position == 9 {
			break
		}
		fmt.Fprintf(stdout, "%06x", token)
	}
	fmt.Fprintln(stdout)
	switch fault {
	case "silent":
	case "breaks":
		return errors.New("malloc failed!")
	case "timeless":
		fmt.Fprintln(stderr, "achieved tok/s: inf")
	case "backwards":
		fmt.Fprintln(stderr, "achieved tok/s: -3")
	default:
		fmt.Fprintf(stderr, "achieved tok/s: %f\n", float64(steps-1)/5*1000) // five milliseconds
	}
	return nil
}

// decoding is a sequence that runs through a model.
type decoding struct {
	*contents
	halves       bool // rotate element i with i+d/2, as this model does not
	keys, values [][][]float64
}

func (r *decoding) next(token, position int) int {
	x := append([]float64(nil), r.embedding[token*r.dim:(token+1)*r.dim]...)
	d := r.dim / r.heads
	for l := range r.layers {
		h := norm(x, r.attentionNorm[l])
		q, k := product(r.q[l], h), product(r.k[l], h)
		for head := range r.heads {
			for i := range d / 2 {
				sin, cos := math.Sincos(float64(position) * math.Pow(10000, -2*float64(i)/float64(d)))
				a, b := head*d+2*i, head*d+2*i+1
				if r.halves {
					a, b = head*d+i, head*d+i+d/2
				}
				for _, v := range [][]float64{q, k} {
					v[a], v[b] = v[a]*cos-v[b]*sin, v[a]*sin+v[b]*cos
				}
			}
		}
		r.keys[l], r.values[l] = append(r.keys[l], k), append(r.values[l], product(r.v[l], h))
		mixed := make([]float64, r.dim)
		for head := range r.heads {
			own := func(v []float64) []float64 { return v[head*d : (head+1)*d] }
			sum, weights := 0.0, make([]float64, position+1)
			for t := range weights {
				weights[t] = math.Exp(dot(own(q), own(r.keys[l][t])) / math.Sqrt(float64(d)))
				sum += weights[t]
			}
			for t, a := range weights {
				for i, v := range own(r.values[l][t]) {
					mixed[head*d+i] += a / sum * v
				}
			}
		}
		add(x, product(r.o[l], mixed))
		h = norm(x, r.ffnNorm[l])
		gate, up := product(r.gate[l], h), product(r.up[l], h)
		for i, g := range gate {
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
		add(x, product(r.down[l], gate))
	}
	best := 0
	logits := product(r.embedding, norm(x, r.outputNorm))
	for id, logit := range logits {
		if logit > logits[best] {
			best = id
		}
	}
	return best
}

func norm(x, gain []float64) []float64 {
	r := 1 / math.Sqrt(dot(x, x)/float64(len(x))+1e-5)
	out := make([]float64, len(x))
	for i := range x {
		out[i] = gain[i] * (r * x[i])
	}
	return out
}

func product(w, x []float64) []float64 {
	out := make([]float64, len(w)/len(x))
	for i := range out {
		out[i] = dot(w[i*len(x):(i+1)*len(x)], x)
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func add(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}
