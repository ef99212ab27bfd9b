package eval

// Windows cuts a story into stretches of at most context tokens, without overlap. What is to be predicted is the
// story's tokens and then the closing end-of-text, each exactly once. A window's inputs are end-of-text followed by its
// targets but the last, so that inputs and targets have equal length and targets[i] follows inputs[:i+1].
// The slices that yield gets are reused for the next window.
func Windows(story []int32, endOfText int32, context int, yield func(inputs, targets []int32) error) error {
	inputs := make([]int32, 0, context)
	targets := make([]int32, 0, context)
	for start := 0; start <= len(story); start += context {
		targets = append(targets[:0], story[start:min(start+context, len(story))]...)
		if len(targets) < context {
			targets = append(targets, endOfText)
		}
		inputs = append(append(inputs[:0], endOfText), targets[:len(targets)-1]...)
		if err := yield(inputs, targets); err != nil {
			return err
		}
	}
	return nil
}
