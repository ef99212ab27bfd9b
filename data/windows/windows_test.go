package windows

import (
	"slices"
	"testing"
)

// Every token of the story and one closing end-of-text are predicted once, in order, from inputs that start with
// end-of-text and hold only what came before in the same window.
func TestWindowsPredictEveryTokenOnce(t *testing.T) {
	const endOfText = 0
	for context := 1; context <= 9; context++ {
		for length := range 30 {
			story := make([]int32, length)
			for i := range story {
				story[i] = int32(i + 1)
			}
			var predicted []int32
			err := Cut(story, endOfText, context, func(inputs, targets []int32) error {
				if len(inputs) != len(targets) || len(inputs) == 0 || len(inputs) > context {
					t.Fatalf("context %d, story of %d: window of %d inputs and %d targets", context, length, len(inputs), len(targets))
				}
				if inputs[0] != endOfText || !slices.Equal(inputs[1:], targets[:len(targets)-1]) {
					t.Fatalf("context %d, story of %d: inputs %v do not lead to targets %v", context, length, inputs, targets)
				}
				predicted = append(predicted, targets...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := append(slices.Clone(story), endOfText); !slices.Equal(predicted, want) {
				t.Fatalf("context %d: predicted %v, want %v", context, predicted, want)
			}
		}
	}
}
