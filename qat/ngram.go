package qat

// NgramRow is the row of a hashed bigram table of so many rows, at least 1, for a token and the one before it in its
// sequence. At the first position of a sequence, previous is vocab_size.
func NgramRow(previous, id, rows uint32) uint32 {
	k := previous*0x9e3779b1 + id
	k = (k ^ k>>15) * 0x6a09e667
	k = (k ^ k>>13) * 0xbb67ae85
	return (k ^ k>>16) % rows
}
