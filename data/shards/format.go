package shards

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	magic       = "CLMSHARD"
	version     = 1
	headerBytes = 160
	smallVocab  = 1 << 16 // largest vocabulary with tokens of two bytes
)

// Errors that callers may test for with errors.Is.
var (
	ErrNotShard = errors.New("is not a token shard")                                     // wrong magic
	ErrVersion  = errors.New("is a token shard of an unknown version")                   // written by another chiplm
	ErrDamaged  = errors.New("is damaged")                                               // a wrong size, CRC, offset or id
	ErrMismatch = errors.New("belongs to another corpus or another tokenizer than this") // Check failed
)

// Header says what a shard holds.
type Header struct {
	CorpusSHA256    string `json:"corpus_sha256"`    // 64 hexadecimal digits, as in data.Info
	TokenizerSHA256 string `json:"tokenizer_sha256"` // 64 hexadecimal digits: the tokenizer's Hash
	VocabSize       int    `json:"vocab_size"`
	EOT             int32  `json:"eot"`       // id of the end-of-text token
	Tokens          int64  `json:"tokens"`    // the end-of-text after each story included
	Stories         int64  `json:"stories"`   //
	RawBytes        int64  `json:"raw_bytes"` // of the stories before tokenising
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// width is the number of bytes of a token.
func (h *Header) width() int64 {
	if h.VocabSize <= smallVocab {
		return 2
	}
	return 4
}

// offsetsAt is where the stories' offsets begin in the file.
func (h *Header) offsetsAt() int64 { return (headerBytes + h.Tokens*h.width() + 7) &^ 7 }

// fileBytes is the size of the whole file.
func (h *Header) fileBytes() int64 { return h.offsetsAt() + 8*h.Stories }

// encode gives the header's bytes; crc is that of all that follows.
func (h *Header) encode(crc uint32) ([]byte, error) {
	b := make([]byte, headerBytes)
	copy(b, magic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], version)
	le.PutUint32(b[12:], headerBytes)
	le.PutUint32(b[16:], uint32(h.width()))
	le.PutUint32(b[20:], uint32(h.VocabSize))
	le.PutUint32(b[24:], uint32(h.EOT))
	for _, sum := range []struct {
		at   int
		text string
		of   string
	}{{32, h.CorpusSHA256, "corpus"}, {64, h.TokenizerSHA256, "tokenizer"}} {
		raw, err := hex.DecodeString(sum.text)
		if err != nil || len(raw) != 32 {
			return nil, fmt.Errorf("the hash of the %s is %q, which is no SHA-256", sum.of, sum.text)
		}
		copy(b[sum.at:], raw)
	}
	le.PutUint64(b[96:], uint64(h.Tokens))
	le.PutUint64(b[104:], uint64(h.Stories))
	le.PutUint64(b[112:], uint64(h.RawBytes))
	le.PutUint32(b[152:], crc)
	le.PutUint32(b[156:], crc32.Checksum(b[:156], castagnoli))
	return b, nil
}

// decode reads and checks the header of a file of size bytes.
func decode(b []byte, size int64) (h Header, crc uint32, err error) {
	damaged := func(format string, args ...any) (Header, uint32, error) {
		return Header{}, 0, fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	le := binary.LittleEndian
	switch {
	case len(b) < len(magic) || string(b[:len(magic)]) != magic:
		return Header{}, 0, ErrNotShard
	case len(b) < headerBytes:
		return damaged("it ends inside its header")
	}
	if v := le.Uint32(b[8:]); v != version {
		return Header{}, 0, fmt.Errorf("%w (%d, this program reads %d)", ErrVersion, v, version)
	}
	if le.Uint32(b[156:]) != crc32.Checksum(b[:156], castagnoli) {
		return damaged("the header's checksum is wrong")
	}
	vocab, eot := le.Uint32(b[20:]), le.Uint32(b[24:])
	tokens, stories, raw := le.Uint64(b[96:]), le.Uint64(b[104:]), le.Uint64(b[112:])
	const most = 1 << 48 // far above any file, far below what overflows
	switch {
	case le.Uint32(b[12:]) != headerBytes:
		return damaged("its header says it has %d bytes", le.Uint32(b[12:]))
	case le.Uint32(b[28:]) != 0:
		return damaged("unknown flags %#x", le.Uint32(b[28:]))
	case string(b[120:152]) != string(make([]byte, 32)):
		return damaged("reserved bytes are not zero")
	case vocab == 0 || vocab > 1<<31-1 || eot >= vocab:
		return damaged("a vocabulary of %d entries with end-of-text %d", vocab, eot)
	case stories == 0 || tokens < stories || tokens > most || raw > most:
		return damaged("%d tokens in %d stories of %d bytes", tokens, stories, raw)
	}
	h = Header{
		CorpusSHA256:    hex.EncodeToString(b[32:64]),
		TokenizerSHA256: hex.EncodeToString(b[64:96]),
		VocabSize:       int(vocab),
		EOT:             int32(eot),
		Tokens:          int64(tokens),
		Stories:         int64(stories),
		RawBytes:        int64(raw),
	}
	switch want := h.fileBytes(); {
	case int64(le.Uint32(b[16:])) != h.width():
		return damaged("tokens of %d bytes for a vocabulary of %d", le.Uint32(b[16:]), vocab)
	case size != want:
		return damaged("it has %d bytes where its header says %d: was it cut short?", size, want)
	}
	return h, le.Uint32(b[152:]), nil
}
