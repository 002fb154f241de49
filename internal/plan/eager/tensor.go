package eager

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// MaxDims is the most dimensions a tensor has.
const MaxDims = 6

// storage is memory that one or more tensors lie in.
type storage struct {
	refs int32
	id   int32 // in the ledger; none if it is empty
}

const noEntry = -1

// Tensor is a tensor without its numbers.
type Tensor struct {
	machine *Machine
	store   *storage
	// owners counts all that keep the tensor; held are those of them that are
	// names of the program.
	owners, held int32
	scope        *scope

	dtype  DType
	dims   int8
	view   bool // made by a view op: it keeps its base
	needs  bool // a gradient
	dim    [MaxDims]int64
	stride [MaxDims]int64

	node *Node // that made it
	slot int   // which output of the node

	// Of a leaf that needs a gradient.
	sink *Node
	grad *Tensor
}

// DType is the type of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Dims is the number of dimensions.
func (t *Tensor) Dims() int { return int(t.dims) }

// Size is the length of dimension i; a negative i counts from the end.
func (t *Tensor) Size(i int) int64 { return t.dim[t.axis(i)] }

// LastStride is how far apart the elements of the last dimension are.
func (t *Tensor) LastStride() int64 { return t.stride[t.dims-1] }

// Shape is the lengths of the dimensions.
func (t *Tensor) Shape() []int64 { return t.dim[:t.dims] }

// Elements is the number of elements.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape() {
		n *= d
	}
	return n
}

// Bytes is the size of the elements.
func (t *Tensor) Bytes() int64 { return t.Elements() * t.dtype.Size() }

// NeedsGrad reports whether a gradient flows into t.
func (t *Tensor) NeedsGrad() bool { return t.needs }

// Grad is the gradient of a leaf, or nil.
func (t *Tensor) Grad() *Tensor { return t.grad }

func (t *Tensor) axis(i int) int {
	if i < 0 {
		i += int(t.dims)
	}
	if i < 0 || i >= int(t.dims) {
		panic(fmt.Sprintf("eager: dimension %d of %v", i, t.Shape()))
	}
	return i
}

// Keep makes another name for t, to be given up with Drop.
func (t *Tensor) Keep() *Tensor {
	t.owners++
	t.held++
	t.machine.scope.keep(t, 1)
	return t
}

// Drop gives a name of t up.
func (t *Tensor) Drop() {
	if t == nil {
		return
	}
	t.held--
	t.machine.scope.keep(t, -1)
	t.release()
}

// retain and release are for owners that are no names: saved tensors, buffers
// of the backward pass, gradients.
func (t *Tensor) retain() *Tensor {
	t.owners++
	return t
}

func (t *Tensor) release() {
	t.owners--
	if t.owners > 0 {
		return
	}
	if t.owners < 0 {
		panic("eager: a tensor was dropped twice")
	}
	if n := t.node; n != nil {
		t.node = nil
		n.unref()
	}
	t.machine.unref(t.store)
	t.machine.giveTensor(t)
}

// Drop gives up several names.
func Drop(ts ...*Tensor) {
	for _, t := range ts {
		t.Drop()
	}
}

// IsContiguous reports whether the elements lie in the order of the dimensions
// without gaps.
func (t *Tensor) IsContiguous() bool {
	want := int64(1)
	for i := int(t.dims) - 1; i >= 0; i-- {
		if t.dim[i] == 1 {
			continue
		}
		if t.stride[i] != want {
			return false
		}
		want *= t.dim[i]
	}
	return true
}

// isDense reports whether the elements fill their memory without gaps or
// overlaps, in whatever order.
func (t *Tensor) isDense() bool {
	var order [MaxDims]int
	n := 0
	for i := range int(t.dims) {
		if t.dim[i] == 1 {
			continue
		}
		j := n
		for ; j > 0 && t.stride[order[j-1]] > t.stride[i]; j-- {
			order[j] = order[j-1]
		}
		order[j] = i
		n++
	}
	want := int64(1)
	for _, i := range order[:n] {
		if t.stride[i] != want {
			return false
		}
		want *= t.dim[i]
	}
	return true
}

func contiguous(shape []int64) (stride [MaxDims]int64) {
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		stride[i] = step
		step *= max(shape[i], 1)
	}
	return stride
}

// sameShape reports whether t has the shape.
func (t *Tensor) sameShape(shape []int64) bool {
	if int(t.dims) != len(shape) {
		return false
	}
	for i, d := range shape {
		if t.dim[i] != d {
			return false
		}
	}
	return true
}

// SetKind says what the storage of t is for.
func (t *Tensor) SetKind(k ledger.Kind) *Tensor {
	if t.store.id != noEntry {
		t.machine.Ledger.Tensors[t.store.id].Kind = k
	}
	return t
}
