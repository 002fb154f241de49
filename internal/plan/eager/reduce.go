package eager

// Reductions split their work over thread blocks when there are few results
// and much to add up. The blocks then meet in a buffer, which is allocated.
// The rule is that of ATen's reduction kernel.

const (
	reduceThreads  = 512
	warpSize       = 32
	valuesAtLeast  = 16
	valuesAtMost   = 256
	reduceVecWidth = 4
)

// reduction is a sum, mean or similar of a dense tensor.
type reduction struct {
	outputs, inputs int64 // results, and elements per result
	inner           bool  // the reduced elements are next to each other
	size, arg       int64 // bytes of an element and of an intermediate result
}

// scratch is the sizes of the two buffers, both 0 if none are needed.
func (r reduction) scratch(d Device) (buffer, semaphores int64) {
	width, height, vec := int64(1), int64(1), int64(1)
	dim0, dim1 := r.outputs, r.inputs
	if r.inner {
		dim0, dim1 = r.inputs, r.outputs
		if dim0 > 128 && r.outputs == 1 {
			dim0 /= reduceVecWidth
		}
	} else {
		vec = reduceVecWidth
		for dim0%vec != 0 {
			vec /= 2
		}
		dim0 /= vec
	}
	threads := reduceThreads / vec
	p0, p1 := min(lastPower(dim0), threads), min(lastPower(dim1), threads)
	width = min(p0, warpSize)
	height = min(p1, threads/width)
	width = min(p0, threads/height)

	perThread := r.inputs
	reduceX, reduceY := false, false
	step, outPer := int64(1), int64(1)
	if r.inner {
		reduceX = true
		step *= width
	} else {
		outPer *= width * vec
	}
	if ceil(perThread, step) >= min(height*16, valuesAtMost) {
		reduceY = true
		step *= height
	} else {
		outPer *= height
	}
	grid := ceil(r.outputs, outPer)
	perSM := d.ThreadsPerProc / (width * height)
	target := d.Multiprocessors * perSM
	each := ceil(perThread, step)
	if !reduceY || each < valuesAtMost || grid > target {
		return 0, 0
	}
	blocks := max(min(ceil(target, grid), ceil(each, valuesAtLeast)), ceil(each, valuesAtMost))
	if blocks <= 1 {
		return 0, 0
	}
	buffer = r.arg * r.outputs * blocks
	if !reduceX {
		buffer *= width * vec
	}
	return buffer, 4 * grid
}

func lastPower(n int64) int64 {
	p := int64(1)
	for p*2 <= n {
		p *= 2
	}
	return p
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// reduced allocates the result of a reduction and what it needs meanwhile.
// keep lists the dimensions that stay.
func (m *Machine) reduced(op string, x *Tensor, d DType, shape []int64, inner bool) *Tensor {
	y := m.Empty(op, d, shape...)
	outputs := max(y.Elements(), 1)
	arg := x.dtype.Size()
	if x.dtype.IsFloat() {
		arg = max(arg, 4)
	}
	r := reduction{outputs: outputs, inputs: x.Elements() / outputs, inner: inner, size: x.dtype.Size(), arg: arg}
	buffer, semaphores := r.scratch(m.Device)
	if buffer > 0 {
		b := m.scratch(buffer, op)
		s := m.scratch(semaphores, op)
		m.unref(s)
		m.unref(b)
	}
	return y
}

// Mean is the mean over the last dimension, which stays with length one.
func (m *Machine) Mean(x *Tensor) *Tensor {
	n := m.node("MeanBackward1", x)
	shape := x.dim
	shape[x.dims-1] = 1
	y := m.reduced("mean", x, x.dtype, shape[:x.dims], x.stride[x.dims-1] == 1)
	if n != nil {
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			e := n.machine.Expand(g[0], n.shape(0)...)
			out := n.machine.unary("div", e)
			e.Drop()
			return n.give(out)
		}
		n.made(y)
	}
	return y
}

// MeanOver is the mean over a dimension, which is taken out.
func (m *Machine) MeanOver(x *Tensor, dim int) *Tensor {
	dim = x.axis(dim)
	n := m.node("MeanBackward1", x)
	shape, _ := x.without(dim)
	y := m.reduced("mean", x, x.dtype, shape[:x.dims-1], x.stride[dim] == 1)
	if n != nil {
		n.at[0] = dim
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			u := n.machine.Unsqueeze(g[0], n.at[0])
			e := n.machine.Expand(u, n.shape(0)...)
			out := n.machine.unary("div", e)
			Drop(u, e)
			return n.give(out)
		}
		n.made(y)
	}
	return y
}

// Sum is the sum over dimension dim, in fp32 under autocast.
func (m *Machine) Sum(x *Tensor, dim int, keep bool) *Tensor {
	return m.sum(x, dim, keep, m.upperResult(x))
}

// SumWide is the sum over dimension dim with an fp32 result.
func (m *Machine) SumWide(x *Tensor, dim int, keep bool) *Tensor { return m.sum(x, dim, keep, Float32) }

func (m *Machine) sum(x *Tensor, dim int, keep bool, d DType) *Tensor {
	dim = x.axis(dim)
	n := m.node("SumBackward1", x)
	shape := append([]int64(nil), x.Shape()...)
	shape[dim] = 1
	if !keep {
		shape = append(shape[:dim], shape[dim+1:]...)
	}
	y := m.reduced("sum", x, d, shape, x.stride[dim] == 1)
	if n != nil {
		from := append([]int64(nil), x.Shape()...)
		n.apply = func(_ *Node, g []*Tensor) []*Tensor {
			u := g[0].Keep()
			if !keep {
				u.Drop()
				u = m.Unsqueeze(g[0], dim)
			}
			e := m.Expand(u, from...)
			u.Drop()
			return []*Tensor{e}
		}
		n.made(y)
	}
	return y
}

// SumTo adds up what was broadcast, so that x has the shape.
func (m *Machine) SumTo(x *Tensor, shape []int64) *Tensor {
	if x.sameShape(shape) {
		return x.Keep()
	}
	shift := int(x.dims) - len(shape)
	kept := append([]int64(nil), x.Shape()...)
	inner, any := false, false
	var least int64 = -1
	for i := range kept {
		reduce := i < shift || shape[i-shift] == 1 && kept[i] != 1
		if kept[i] != 1 && x.stride[i] != 0 && (least < 0 || x.stride[i] < least) {
			least, inner = x.stride[i], reduce
		}
		if reduce {
			any = true
			kept[i] = 1
		}
	}
	if !any {
		return m.View(x, shape...)
	}
	y := m.reduced("sum", x, x.dtype, kept, inner)
	if shift == 0 {
		return y
	}
	v := m.View(y, shape...)
	y.Drop()
	return v
}

// Argmax is x.argmax(-1). What its blocks meet in are pairs of a number and
// where it was.
func (m *Machine) Argmax(x *Tensor) *Tensor {
	const op = "argmax"
	shape := x.Shape()
	y := m.Empty(op, Int64, shape[:len(shape)-1]...)
	m.meet(op, reduction{
		outputs: max(y.Elements(), 1), inputs: x.Size(-1), inner: x.stride[x.dims-1] == 1, size: x.dtype.Size(), arg: 16,
	})
	return y
}
