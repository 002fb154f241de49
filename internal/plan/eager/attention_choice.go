package sdpa

import (
	"fmt"
	"strings"
)

// Backend is a kernel of scaled dot-product attention.
type Backend string

// The kernels.
const (
	CuDNN     Backend = "cudnn"
	Flash     Backend = "flash"
	Efficient Backend = "efficient"
	Math      Backend = "math"
)

// Mask is what is passed to say which keys a query sees.
type Mask int

// The kinds of masks. Causal is the is_causal flag without a tensor; the others
// are tensors, the last one such that a gradient for it is wanted, as t5's
// position bias is.
const (
	NoMask Mask = iota
	Causal
	BoolMask
	FloatMask
	GradMask
)

// DType is the type of query, key and value.
type DType string

// The types, as torch names them.
const (
	Float32  DType = "float32"
	BFloat16 DType = "bfloat16"
	Float16  DType = "float16"
)

// CuDNNVersion is the cuDNN that PyTorch 2.11 for CUDA 13 comes with: 9.19.0.
const CuDNNVersion = 91900

// Query is one call.
type Query struct {
	// Major and Minor are the card's compute capability; 0 is 9.0.
	Major, Minor int
	// CuDNN is its version as major*10000 + minor*100 + patch; 0 is
	// [CuDNNVersion].
	CuDNN int

	DType          DType
	QKDim, VDim    int // width of a query and key head, and of a value head
	Queries, Keys  int // sequence lengths
	Heads, KVHeads int // KVHeads of 0 is as many as Heads
	Mask           Mask
	// MaskApart is a mask whose last dimension has a stride other than 1, as
	// t5's position bias has.
	MaskApart bool
	Dropout   float64
	Grad      bool // a gradient for query, key or value is wanted
}

// Refusal is a kernel that was asked before the chosen one, and why it was not
// taken.
type Refusal struct {
	Backend Backend `json:"backend"`
	Why     string  `json:"why"`
}

// Choice is what torch runs.
type Choice struct {
	Backend Backend   `json:"backend"`
	Refused []Refusal `json:"refused,omitempty"`
}

// Reason words the choice: "efficient (cudnn: float32; flash: a mask)".
func (c Choice) Reason() string {
	if len(c.Refused) == 0 {
		return string(c.Backend) + " (first in order)"
	}
	words := make([]string, len(c.Refused))
	for i, r := range c.Refused {
		words[i] = string(r.Backend) + ": " + r.Why
	}
	return string(c.Backend) + " (" + strings.Join(words, "; ") + ")"
}

// Pick is the kernel that torch runs.
func Pick(q Query) Backend { return Choose(q).Backend }

// Choose is [Pick] with the reasons.
func Choose(q Query) Choice {
	q.settle()
	order := []Backend{Flash, Efficient}
	if q.prefersCuDNN() {
		order = []Backend{CuDNN, Flash, Efficient}
	}
	var refused []Refusal
	for _, b := range order {
		why := q.refuses(b)
		if why == "" {
			return Choice{Backend: b, Refused: refused}
		}
		refused = append(refused, Refusal{Backend: b, Why: why})
	}
	// Math takes everything. Where cuDNN is not preferred it would come after.
	return Choice{Backend: Math, Refused: refused}
}

// prefersCuDNN says whether cuDNN is asked first. Versions up to 9.15.0 were
// wrong for lengths that are no multiple of 128.
func (q Query) prefersCuDNN() bool {
	return q.CuDNN > 91500 && (q.Major == 9 || q.Major == 10) && (q.Minor == 0 || q.Minor == 3)
}

// Refuses says why a kernel cannot run the call when it is the only one
// allowed, "" if it can. Math takes everything.
func (q Query) Refuses(b Backend) string {
	q.settle()
	if b == Math {
		return ""
	}
	return q.refuses(b)
}

// settle fills in what is left out.
func (q *Query) settle() {
	if q.Major == 0 {
		q.Major, q.Minor = 9, 0
	}
	if q.CuDNN == 0 {
		q.CuDNN = CuDNNVersion
	}
	if q.KVHeads == 0 {
		q.KVHeads = q.Heads
	}
}

// refuses says why a kernel cannot run the call, "" if it can.
func (q Query) refuses(b Backend) string {
	if q.Queries == 0 || q.Keys == 0 {
		return "an empty sequence"
	}
	if q.MaskApart && q.Mask > Causal && b != Flash {
		return "a mask whose keys are not next to each other"
	}
	switch b {
	case CuDNN:
		return q.cudnn()
	case Flash:
		return q.flash()
	}
	return q.efficient()
}

func (q Query) cudnn() string {
	limit := 128
	switch {
	case q.Major == 9 && q.Minor == 0 && q.CuDNN >= 91000:
		limit = 256
	case q.Major == 10 && q.QKDim == 192 && q.VDim == 128 && q.CuDNN >= 91100:
		// DeepSeek's widths, and only these.
		limit = 192
	}
	switch {
	case q.Dropout > 0 && q.CuDNN > 91100 && q.CuDNN < 91400:
		return "dropout with cuDNN 9.11 to 9.13"
	case !q.half():
		return string(q.DType)
	case q.Mask == GradMask:
		return "a mask that needs a gradient"
	case !q.within(8, 0, 12, 1):
		return q.card()
	case q.QKDim > limit || q.VDim > limit:
		return fmt.Sprintf("a head of %d is wider than %d", max(q.QKDim, q.VDim), limit)
	case q.QKDim%8 != 0 || q.VDim%8 != 0:
		return "a head's width is no multiple of 8"
	case q.Keys == 1:
		return "a single key"
	case q.Queries == 1 && q.Dropout > 0:
		return "a single query with dropout"
	}
	return ""
}

func (q Query) flash() string {
	narrow := q.within(8, 6, 8, 9) || q.within(12, 0, 12, 1)
	switch {
	case q.Mask != NoMask && q.Mask != Causal:
		return "a mask"
	case q.QKDim != q.VDim:
		return fmt.Sprintf("keys of %d and values of %d", q.QKDim, q.VDim)
	case q.QKDim > 256:
		return fmt.Sprintf("a head of %d is wider than 256", q.QKDim)
	case !q.within(8, 0, 12, 1):
		return q.card()
	case q.Grad && narrow && q.QKDim > 192 && (q.QKDim <= 224 || q.Dropout > 0):
		return fmt.Sprintf("no backward for a head of %d on %s", q.QKDim, q.card())
	case q.Mask == Causal && q.Queries != q.Keys:
		return "causal with fewer queries than keys"
	case !q.half():
		return string(q.DType)
	}
	return ""
}

func (q Query) efficient() string {
	align := q.alignment()
	switch {
	case !q.within(5, 0, 12, 1):
		return q.card()
	case q.QKDim%align != 0 || q.VDim%align != 0:
		return fmt.Sprintf("a head's width is no multiple of %d", align)
	case q.Heads != q.KVHeads:
		return "grouped heads"
	case q.DType == BFloat16 && q.Major < 8:
		return "bfloat16 on " + q.card()
	}
	return ""
}

// alignment is what CUTLASS's matrix products need: 16 bytes with tensor cores.
func (q Query) alignment() int {
	half := q.DType != Float32
	switch {
	case half && q.Major >= 7:
		return 8
	case q.Major >= 8:
		return 4
	}
	return 1
}

// half says whether the type is one that the fast kernels take on this card.
func (q Query) half() bool {
	return q.DType == Float16 || q.DType == BFloat16 && q.Major >= 8
}

func (q Query) card() string { return fmt.Sprintf("sm%d%d", q.Major, q.Minor) }

// within says whether the card's capability lies between two.
func (q Query) within(lowMajor, lowMinor, highMajor, highMinor int) bool {
	above := q.Major > lowMajor || q.Major == lowMajor && q.Minor >= lowMinor
	below := q.Major < highMajor || q.Major == highMajor && q.Minor <= highMinor
	return above && below
}
