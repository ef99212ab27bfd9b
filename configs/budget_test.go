package configs

import "testing"

// comboSizes are those of combo.yaml, written out so that the expected figures below can be worked out by hand.
func comboSizes() *Config {
	return &Config{VocabSize: 4096, DModel: 128, NLayers: 6, NHeads: 4, DFF: 320, ContextLength: 256, PLEDim: 64,
		TieEmbeddings: true, Activation: ReLU,
		Quant: Quant{Weights: WeightQuant{Bits: 4, Group: 64, Scale: ScaleF32}, Activations: ActivationQuant{Bits: 8}}}
}

func TestBudgetOfCombo(t *testing.T) {
	b := comboSizes().Budget()
	if b.Total.Parameters != 3377600 {
		t.Errorf("%d parameters, want 3377600", b.Total.Parameters)
	}
	// qkv, attention_output, gate, up, down, ple_gate and ple_output of a layer; ple_projection; the head.
	layer := int64(384*128 + 128*128 + 3*320*128 + 2*64*128)
	products := 6*layer + 384*128 + 4096*128
	if b.Products != products {
		t.Errorf("%d weights in products, want %d", b.Products, products)
	}
	if want := 6*products + 6*6*128*257; b.TrainFLOP != want || want/1e6 != 11 {
		t.Errorf("%d FLOP per token, want %d", b.TrainFLOP, want)
	}
	// Every matrix of combo has a multiple of 64 columns: half a byte a weight, 4 bytes a group.
	matrices := products + 4096*384
	if want := matrices / 2; b.Total.Codes-4*(b.Total.Parameters-matrices) != want {
		t.Errorf("%d bytes of codes, want %d and the norms", b.Total.Codes, want)
	}
	if want := matrices / 64 * 4; b.Total.Scales != want {
		t.Errorf("%d bytes of scales, want %d", b.Total.Scales, want)
	}
	rowOfTable, rowOfEmbedding := int64(384/2+384/64*4), int64(128/2+128/64*4)
	norms := 4 * (b.Total.Parameters - matrices)
	if want := products/2 + products/64*4 + norms + rowOfTable + rowOfEmbedding; b.Total.TokenRead != want {
		t.Errorf("a token reads %d bytes, want %d", b.Total.TokenRead, want)
	}
}

func TestBudgetOfExpertsAndOddSizes(t *testing.T) {
	c := comboSizes()
	c.Experts, c.PLEDim, c.TieEmbeddings = 4, 0, false
	c.DFF, c.NLayers = 65, 1
	c.Quant.Weights = WeightQuant{Bits: 2, Group: 32, Scale: ScaleF16}
	b := c.Budget()
	for _, tb := range b.Tensors {
		switch tb.Name {
		case "layers.0.down": // stored by its 65 columns of 128 codes of 2 bits: two blocks; three groups
			if tb.Codes != 4*65*32 || tb.Scales != 4*128*3*2 || tb.TokenRead != 65*32+128*6 || tb.Products != 128*65 {
				t.Errorf("down: %+v", tb)
			}
		case "layers.0.router":
			if tb.Codes != 4*128*4 || tb.Scales != 0 || tb.Products != 4*128 || tb.Reading != ReadWhole {
				t.Errorf("router: %+v", tb)
			}
		case TokenEmbedding:
			if tb.Reading != ReadRow || tb.Products != 0 || tb.TokenRead != 32+8 {
				t.Errorf("embedding: %+v", tb)
			}
		case Head:
			if tb.Products != 4096*128 {
				t.Errorf("head: %+v", tb)
			}
		}
	}
}

func TestSplitTensor(t *testing.T) {
	for _, c := range []struct {
		name  string
		layer int
		part  string
	}{
		{LayerTensor(0, Gate), 0, Gate}, {LayerTensor(123, PLEOutput), 123, PLEOutput}, {Head, -1, Head},
		{TokenEmbedding, -1, TokenEmbedding}, {"layers.x.up", -1, "layers.x.up"}, {"layers.3", -1, "layers.3"}, {"layers.-3.up", -1, "layers.-3.up"},
	} {
		if layer, part := SplitTensor(c.name); layer != c.layer || part != c.part {
			t.Errorf("%s: %d and %q, want %d and %q", c.name, layer, part, c.layer, c.part)
		}
	}
}
