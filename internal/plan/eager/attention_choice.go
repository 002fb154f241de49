package eager

import "fmt"

// Torch picks the kernel of scaled_dot_product_attention. The four keep very
// different memory for the backward pass: cuDNN's and the flash kernel keep the
// inputs, the output and one number per row; the memory-efficient kernel also
// keeps a mask in the inputs' type; the math fallback keeps the whole matrix of
// probabilities. Torch goes through them in an order that depends on the card and
// takes the first that does not refuse the inputs. The rules are those of PyTorch
// 2.11 (sdp_utils.cpp).
//
// On Hopper and data-centre Blackwell cuDNN comes first, on every other card
// flash. TestChoiceRecorded compares with what PyTorch 2.11 picked on an H200 for
// 5,400 combinations; the rules for other cards are those of the source.

// maskKind is what is passed to say which keys a query sees.
type maskKind int

// The kinds of masks. causalMask is the is_causal flag without a tensor; the
// others are tensors, the last one such that a gradient for it is wanted, as t5's
// position bias is.
const (
	noMask maskKind = iota
	causalMask
	boolMask
	floatMask
	gradMask
)

// cudnnVersion is the cuDNN that PyTorch 2.11 for CUDA 13 comes with: 9.19.0.
const cudnnVersion = 91900

// AttentionQuery is what the choice of a kernel depends on.
type AttentionQuery struct {
	major, minor int // the card's compute capability
	cudnn        int // its version as major*10000 + minor*100 + patch

	dtype          DType // of query, key and value
	qkDim, vDim    int   // width of a query and key head, and of a value head
	queries, keys  int   // sequence lengths
	heads, kvHeads int
	mask           maskKind
	maskApart      bool // its last dimension has a stride other than 1, as t5's position bias has
	dropout        bool
	grad           bool // a gradient for query, key or value is wanted
}

// AttentionQuery returns what the choice of a kernel for a call depends on.
func (m *Machine) AttentionQuery(a Attention) AttentionQuery {
	q := AttentionQuery{
		major: m.Device.Capability / 10, minor: m.Device.Capability % 10, cudnn: cudnnVersion,
		dtype: m.Lowered(a.Q),
		qkDim: int(a.Q.Size(-1)), vDim: int(a.V.Size(-1)),
		queries: int(a.Q.Size(2)), keys: int(a.K.Size(2)),
		heads: int(a.Q.Size(1)), kvHeads: int(a.K.Size(1)),
		maskApart: a.Mask != nil && a.Mask.LastStride() != 1,
		dropout:   a.Dropout,
		grad:      a.Q.NeedsGrad() || a.K.NeedsGrad() || a.V.NeedsGrad(),
	}
	switch {
	case a.Mask == nil && a.Causal:
		q.mask = causalMask
	case a.Mask == nil:
	case a.Mask.NeedsGrad():
		q.mask = gradMask
	case a.Mask.dtype == Bool:
		q.mask = boolMask
	default:
		q.mask = floatMask
	}
	return q
}

// Pick returns the kernel that torch runs.
func (q AttentionQuery) Pick() Backend {
	for _, b := range q.order() {
		if q.Refuses(b) == "" {
			return b
		}
	}
	return MathAttention
}

// order is the order in which torch asks the kernels. Math, which takes
// everything, would come before cuDNN where cuDNN is not preferred. Versions of
// cuDNN up to 9.15.0 were wrong for lengths that are no multiple of 128.
func (q AttentionQuery) order() []Backend {
	if q.cudnn > 91500 && (q.major == 9 || q.major == 10) && (q.minor == 0 || q.minor == 3) {
		return []Backend{CuDNNAttention, FlashAttention, EfficientAttention}
	}
	return []Backend{FlashAttention, EfficientAttention}
}

// Refuses says why a kernel cannot run the call, "" if it can.
func (q AttentionQuery) Refuses(b Backend) string {
	switch {
	case b == MathAttention:
		return ""
	case q.queries == 0 || q.keys == 0:
		return "an empty sequence"
	case q.maskApart && q.mask > causalMask && b != FlashAttention:
		return "a mask whose keys are not next to each other"
	}
	switch b {
	case CuDNNAttention:
		return q.cudnnRefuses()
	case FlashAttention:
		return q.flashRefuses()
	}
	return q.efficientRefuses()
}

func (q AttentionQuery) cudnnRefuses() string {
	limit := 128
	switch {
	case q.major == 9 && q.minor == 0 && q.cudnn >= 91000:
		limit = 256
	case q.major == 10 && q.qkDim == 192 && q.vDim == 128 && q.cudnn >= 91100:
		// DeepSeek's widths, and only these.
		limit = 192
	}
	switch {
	case q.dropout && q.cudnn > 91100 && q.cudnn < 91400:
		return "dropout with cuDNN 9.11 to 9.13"
	case !q.half():
		return q.dtype.String()
	case q.mask == gradMask:
		return "a mask that needs a gradient"
	case !q.within(8, 0, 12, 1):
		return q.card()
	case q.qkDim > limit || q.vDim > limit:
		return fmt.Sprintf("a head of %d is wider than %d", max(q.qkDim, q.vDim), limit)
	case q.qkDim%8 != 0 || q.vDim%8 != 0:
		return "a head's width is no multiple of 8"
	case q.keys == 1:
		return "a single key"
	case q.queries == 1 && q.dropout:
		return "a single query with dropout"
	}
	return ""
}

func (q AttentionQuery) flashRefuses() string {
	narrow := q.within(8, 6, 8, 9) || q.within(12, 0, 12, 1)
	switch {
	case q.mask != noMask && q.mask != causalMask:
		return "a mask"
	case q.qkDim != q.vDim:
		return fmt.Sprintf("keys of %d and values of %d", q.qkDim, q.vDim)
	case q.qkDim > 256:
		return fmt.Sprintf("a head of %d is wider than 256", q.qkDim)
	case !q.within(8, 0, 12, 1):
		return q.card()
	case q.grad && narrow && q.qkDim > 192 && (q.qkDim <= 224 || q.dropout):
		return fmt.Sprintf("no backward for a head of %d on %s", q.qkDim, q.card())
	case q.mask == causalMask && q.queries != q.keys:
		return "causal with fewer queries than keys"
	case !q.half():
		return q.dtype.String()
	}
	return ""
}

func (q AttentionQuery) efficientRefuses() string {
	align := q.alignment()
	switch {
	case !q.within(5, 0, 12, 1):
		return q.card()
	case q.qkDim%align != 0 || q.vDim%align != 0:
		return fmt.Sprintf("a head's width is no multiple of %d", align)
	case q.heads != q.kvHeads:
		return "grouped heads"
	case q.dtype == BFloat16 && q.major < 8:
		return "bfloat16 on " + q.card()
	}
	return ""
}

// alignment is what CUTLASS's matrix products need: 16 bytes with tensor cores.
func (q AttentionQuery) alignment() int {
	half := q.dtype != Float32
	switch {
	case half && q.major >= 7:
		return 8
	case q.major >= 8:
		return 4
	}
	return 1
}

// half reports whether the type is one that the fast kernels take on this card.
func (q AttentionQuery) half() bool {
	return q.dtype == Float16 || q.dtype == BFloat16 && q.major >= 8
}

func (q AttentionQuery) card() string { return fmt.Sprintf("sm%d%d", q.major, q.minor) }

// within reports whether the card's capability lies between two.
func (q AttentionQuery) within(lowMajor, lowMinor, highMajor, highMinor int) bool {
	above := q.major > lowMajor || q.major == lowMajor && q.minor >= lowMinor
	below := q.major < highMajor || q.major == highMajor && q.minor <= highMinor
	return above && below
}
