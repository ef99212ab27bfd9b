package placement

import (
	"math"

	"github.com/chiplm/chiplm/configs"
	"github.com/chiplm/chiplm/export/targets"
)

// HeadMeans is the tensor of the means of clusters that a search by means reads. No image of ours holds it.
const HeadMeans = "head_means"

// assumedTokens is the length of the text that assumed reads are given for: shares become whole numbers over it.
const assumedTokens = 1_000_000

// BestTokens is how many tokens a search looks for where its reads are measured or assumed: as many as are chosen among
// by default.
const BestTokens = 40

// Assume gives what a token is taken to read where nobody measured it: the profile's shares of the output layer's rows and
// of the neurons. The result is nil where everything is read.
func Assume(c *configs.Config, p *targets.Profile) *Measured {
	r := &p.Reads
	m := &Measured{Tokens: assumedTokens, Assumed: true}
	if r.Search != targets.SearchNone && c.VocabSize >= max(r.Least, r.Clusters) {
		v := float64(c.VocabSize)
		m.Head = &Head{Clusters: r.Clusters, Rows: r.Rows.Value * v, Blocks: [2]float64{r.Blocks.Value * v, r.Seconds.Value * v},
			Means: r.Search == targets.SearchMeans, Idle: !r.Searches(BestTokens)}
		if m.Head.Means {
			m.Head.Blocks = [2]float64{}
		}
	}
	if c.Activation == configs.ReLU {
		m.Neurons = make([]Neurons, c.NLayers)
		for l := range m.Neurons {
			m.Neurons[l] = assumedNeurons(c, r.Neurons.Value)
		}
	}
	if m.Head == nil && m.Neurons == nil {
		return nil
	}
	return m
}

// assumedNeurons has the share live of a layer's neurons speak, as if each did by chance on its own.
func assumedNeurons(c *configs.Config, live float64) Neurons {
	all := AllNeurons(c)
	groups := float64(all.Groups)
	size := float64(c.DFF) / max(groups, 1)
	return Neurons{
		Experts: assumedTokens,
		Up:      int64(math.Round(live * float64(all.Up) * assumedTokens)),
		Down:    int64(math.Round(live * float64(all.Down) * assumedTokens)),
		Groups:  int64(math.Round(groups * (1 - math.Pow(1-live, size)) * assumedTokens)),
	}
}

// head is the search of the output layer; nil where it is read in full.
func (m *Measured) head() *Head {
	if m == nil || m.Head == nil || m.Head.Idle {
		return nil
	}
	return m.Head
}
