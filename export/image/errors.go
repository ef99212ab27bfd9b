package image

import "errors"

// The reasons for which a reader refuses a file, in the order in which it looks.
var (
	// ErrShort: the file is smaller than a header.
	ErrShort = errors.New("file is shorter than an image header")
	// ErrMagic: the file does not start with CLM and a zero byte.
	ErrMagic = errors.New("not a chiplm image")
	// ErrVersion: the image has a version this reader does not know.
	ErrVersion = errors.New("unknown image version")
	// ErrHeaderBytes: the header does not have the size of this version.
	ErrHeaderBytes = errors.New("wrong header size")
	// ErrFlags: a flag is set that this reader does not know.
	ErrFlags = errors.New("unknown image flag")
	// ErrReserved: a reserved byte is not zero.
	ErrReserved = errors.New("reserved bytes are not zero")
	// ErrFileBytes: the file is longer or shorter than its header says.
	ErrFileBytes = errors.New("wrong file size")
	// ErrFileCRC: the checksum of the whole file is wrong.
	ErrFileCRC = errors.New("wrong file checksum")
	// ErrSections: a section is unknown, missing, out of order, unaligned, or outside the file.
	ErrSections = errors.New("bad section table")
	// ErrSectionCRC: the checksum of a section is wrong.
	ErrSectionCRC = errors.New("wrong section checksum")
	// ErrSizes: the sizes of the model make no sense, alone or together.
	ErrSizes = errors.New("bad model sizes")
	// ErrTensors: an entry of the tensor table does not follow from the sizes, or points outside the data.
	ErrTensors = errors.New("bad tensor table")
	// ErrTensorCRC: the checksum of a tensor is wrong.
	ErrTensorCRC = errors.New("wrong tensor checksum")
	// ErrPadding: bytes between sections or tensors are not zero.
	ErrPadding = errors.New("padding is not zero")
	// ErrCodes: a weight has a code that the format refuses, or a value that is subnormal or not finite.
	ErrCodes = errors.New("bad weight code")
	// ErrClusters: the data of a clustered head contradict themselves, or a bound is wrong.
	ErrClusters = errors.New("bad clusters of the head")
	// ErrScales: a scale is negative, subnormal or not finite.
	ErrScales = errors.New("bad weight scale")
	// ErrRope: the rotary tables have a wrong size or hold no cosines and sines.
	ErrRope = errors.New("bad rotary tables")
	// ErrTokenizer: the tokenizer section contradicts itself or the sizes.
	ErrTokenizer = errors.New("bad tokenizer section")
	// ErrGolden: the golden contradicts itself or the sizes.
	ErrGolden = errors.New("bad golden")
	// ErrConfig: the configuration is no text, or says other sizes than the image.
	ErrConfig = errors.New("bad configuration section")
)

// ErrModel is returned by the writer for a model that cannot be an image.
var ErrModel = errors.New("model cannot be written as an image")

// Advice says what to do about a file that was refused.
func Advice(err error) string {
	for _, k := range []struct {
		of   []error
		text string
	}{
		{[]error{ErrShort, ErrFileBytes, ErrFileCRC}, "copy it again, or export the checkpoint again if this is the only copy"},
		{[]error{ErrMagic}, "give the model.clm of an export folder"},
		{[]error{ErrVersion}, "export the checkpoint again with this chiplm"},
		{[]error{ErrFlags}, "use the chiplm that wrote it"},
	} {
		for _, e := range k.of {
			if errors.Is(err, e) {
				return k.text
			}
		}
	}
	return "export the checkpoint again"
}
