package train

// Encoder turns text into tokens and tokens into text. Package bpe offers it.
type Encoder interface {
	Encode(dst []int32, text []byte) []int32
	Bytes(id int32) []byte
	EOT() int32
}
