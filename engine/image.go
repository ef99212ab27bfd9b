package engine

// /* -std=c11 also keeps gcc from contracting a*b+c; cgo admits no -ffp-contract. numerics.h sees to clang. */
// #cgo CFLAGS: -std=c11 -O3 -Wall -Wextra -DCHIPLM_HOST
// #cgo LDFLAGS: -lm -pthread
// #include <stdlib.h>
// #include "chiplm.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/edsrzf/mmap-go"

	"github.com/chiplm/chiplm/data/regular"
)

// alignment of every block of memory that the C engine is given.
const alignment = 64

// Image is a checked image in read-only memory. It is safe for concurrent use.
type Image struct {
	mem     *memory
	c       C.chiplm_image // points into mem
	encoder encoder
}

// memory holds the bytes of an image until the last of its users lets go.
type memory struct {
	mu      sync.Mutex
	users   int
	closed  bool
	release func() error
}

func (m *memory) acquire() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.users++
	return nil
}

func (m *memory) drop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users--
	return m.freeIfUnused()
}

func (m *memory) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	return m.freeIfUnused()
}

func (m *memory) freeIfUnused() error {
	if !m.closed || m.users > 0 || m.release == nil {
		return nil
	}
	release := m.release
	m.release = nil
	return release()
}

// OpenImage maps an image file read-only and checks it whole. Errors name the file and wrap one of the sentinel errors
// of this package, or the operating system's.
func OpenImage(path string) (*Image, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open image (the model.clm of an export folder): %w", err)
	}
	defer f.Close() // the mapping stays
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open image: %w", err)
	}
	if st.Size() == 0 { // cannot be mapped
		return nil, fmt.Errorf("image %s: empty: %w", path, ErrSize)
	}
	m, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("map image %s: %w", path, err)
	}
	im, err := newImage(unsafe.Pointer(&m[0]), len(m), m.Unmap)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", path, err)
	}
	return im, nil
}

// NewImage checks an image held in memory and keeps a copy of it.
func NewImage(b []byte) (*Image, error) {
	p := alloc(len(b))
	if p == nil {
		return nil, fmt.Errorf("image: no memory for %d bytes", len(b))
	}
	copy(unsafe.Slice((*byte)(p), len(b)), b)
	im, err := newImage(p, len(b), func() error { C.free(p); return nil })
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return im, nil
}

// newImage takes ownership of the memory, also when it fails.
func newImage(p unsafe.Pointer, n int, release func() error) (*Image, error) {
	im := &Image{mem: &memory{release: release}}
	var fault C.chiplm_fault
	if C.chiplm_image_open(&im.c, p, C.size_t(n), &fault) != C.CHIPLM_OK {
		return nil, joinErrors(failureAt(&fault), im.mem.close())
	}
	runtime.AddCleanup(im, func(m *memory) { _ = m.close() }, im.mem)
	return im, nil
}

// joinErrors is err, with the failure to clean up added if there was one.
func joinErrors(err, cleanup error) error {
	if cleanup != nil {
		return fmt.Errorf("%w (and releasing it: %w)", err, cleanup)
	}
	return err
}

// alloc is aligned memory outside Go's heap, or nil. It is released by C.free.
func alloc(n int) unsafe.Pointer {
	n = max((n+alignment-1)/alignment*alignment, alignment)
	return C.aligned_alloc(alignment, C.size_t(n))
}

// Close lets go of the image. Its memory is released when the last engine over it is closed too.
func (im *Image) Close() error { return im.mem.close() }

// Activation of the gated feed-forward of a model.
type Activation int

// The activations.
const (
	ReLU   Activation = 0
	SwiGLU Activation = 1
)

// Model is the sizes and constants of an image.
type Model struct {
	VocabSize, DModel, NLayers, NHeads, DFF, ContextLength int

	PLEDim          int // 0: no per-layer embeddings
	Experts         int // 1: dense
	Activation      Activation
	TieEmbeddings   bool
	QKNorm          bool
	NormEps         float32
	ScoreScale      float32 // c of the attention scores
	NgramRows       int     // of the hashed bigram table; 0: none
	Tensors         int
	Clusters        int      // of the head's rows; 0: it can be read in full only
	TokenizerSHA256 [32]byte // of the tokenizer.json the model was trained with
	ModelSHA256     [32]byte // of the checkpoint's model.safetensors
}

// Model returns the sizes.
func (im *Image) Model() Model {
	m := &im.c.model
	out := Model{
		VocabSize: int(m.vocab_size), DModel: int(m.d_model), NLayers: int(m.n_layers), NHeads: int(m.n_heads),
		DFF: int(m.d_ff), ContextLength: int(m.context_length), PLEDim: int(m.ple_dim), Experts: int(m.experts),
		Activation: Activation(m.swiglu), TieEmbeddings: m.tied != 0, QKNorm: m.qk_norm != 0,
		NormEps: float32(m.norm_eps), ScoreScale: float32(m.score_scale), Tensors: int(m.n_tensors), Clusters: int(m.clusters),
		NgramRows: int(m.ngram_rows),
	}
	for i := range out.TokenizerSHA256 {
		out.TokenizerSHA256[i] = byte(m.tokenizer_sha256[i])
		out.ModelSHA256[i] = byte(m.model_sha256[i])
	}
	return out
}

// Size is the number of bytes of the image.
func (im *Image) Size() int { return int(im.c.file.bytes) }

// Config returns a copy of the resolved configuration, YAML text; nil after Close.
func (im *Image) Config() []byte { return im.section(im.c.config) }

// Tokenizer returns a copy of the TOKN section; nil after Close.
func (im *Image) Tokenizer() []byte { return im.section(im.c.tokenizer) }

// EndOfText is the id of the token that starts and ends a text; -1 after Close.
func (im *Image) EndOfText() int32 {
	if im.mem.acquire() != nil {
		return -1
	}
	defer im.mem.drop()
	return int32(C.chiplm_image_end_of_text(&im.c))
}

// Token returns a copy of the bytes of a token: none for end-of-text and for ids without an entry; nil after Close.
func (im *Image) Token(id int32) []byte {
	if im.mem.acquire() != nil {
		return nil
	}
	defer im.mem.drop()
	s := C.chiplm_image_token(&im.c, C.int32_t(id))
	if s.bytes == 0 {
		return []byte{}
	}
	return append([]byte{}, unsafe.Slice((*byte)(s.at), int(s.bytes))...)
}

// section copies a part of the image, which must not be unmapped meanwhile.
func (im *Image) section(s C.chiplm_span) []byte {
	if im.mem.acquire() != nil {
		return nil
	}
	defer im.mem.drop()
	return append([]byte{}, unsafe.Slice((*byte)(s.at), int(s.bytes))...)
}

// Tensor describes one tensor of an image. Tier is where the planner wants it: 0 sram, 1 psram, 2 flash.
type Tensor struct {
	Name                   string
	Rows, Cols             int
	Bits, Group            int // Group 0: one scale per row
	Scale                  int // bytes per scale: 4, 2, or 0 for a tensor that is not quantised
	Block                  int // 0: stored by rows; else transposed, a block of so many rows at a time
	Tier                   int
	CodesBytes, ScaleBytes int
}

// Tensors lists the tensors in the order of the table; nil after Close.
func (im *Image) Tensors() []Tensor {
	if im.mem.acquire() != nil {
		return nil
	}
	defer im.mem.drop()
	out := make([]Tensor, im.c.model.n_tensors)
	for i := range out {
		var t C.chiplm_tensor
		C.chiplm_image_tensor(&im.c, C.uint32_t(i), &t)
		out[i] = Tensor{
			Name: C.GoString(&t.name[0]), Rows: int(t.rows), Cols: int(t.columns), Bits: int(t.bits), Group: int(t.group),
			Scale: map[C.uint32_t]int{C.CHIPLM_F32: 4, C.CHIPLM_F16: 2}[t.scale_type], Block: int(t.block), Tier: int(t.tier),
			CodesBytes: int(t.codes.bytes), ScaleBytes: int(t.scales.bytes),
		}
	}
	return out
}

// TokenLogit is a token and its logit.
type TokenLogit struct {
	ID    int32
	Logit float32
}

// Golden is the run that proves an engine: the digest over all positions of a prompt, and the best tokens after it,
// ordered by logit down, then id up.
type Golden struct {
	IDs    []int32
	Digest Digest
	Top    []TokenLogit
}

// Golden returns a copy of the golden; the zero value after Close.
func (im *Image) Golden() Golden {
	if im.mem.acquire() != nil {
		return Golden{}
	}
	defer im.mem.drop()
	g := C.chiplm_image_golden(&im.c)
	out := Golden{Digest: Digest(g.digest), Top: make([]TokenLogit, g.n_top)}
	out.IDs = append(out.IDs, unsafe.Slice((*int32)(g.prompt), int(g.n_prompt))...)
	words := unsafe.Slice((*uint32)(g.top), 2*int(g.n_top))
	for i := range out.Top {
		out.Top[i] = TokenLogit{ID: int32(words[2*i]), Logit: *(*float32)(unsafe.Pointer(&words[2*i+1]))}
	}
	return out
}
