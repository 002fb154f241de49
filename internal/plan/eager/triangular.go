package eager

// cublasLoop is up to how many matrices of at least wideMatrix rows are solved
// one by one; more of them are solved at once, which takes tables of addresses.
const (
	cublasLoop = 8
	wideMatrix = 64
)

// SolveTriangular is linalg.solve_triangular(a, b) for stacks of lower
// triangular matrices. The derivative solves for the gradient of b and takes
// that of a from it.
func (m *Machine) SolveTriangular(a, b *Tensor) *Tensor {
	n := m.node("LinalgSolveTriangularBackward0", a, b)
	n.save(a)
	x := m.solveTriangular(a, b)
	if n != nil {
		n.saveOutput(x)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			a, x := n.unpack(0), n.unpack(1)
			at := m.Transpose(a, -2, -1)
			out := []*Tensor{nil, m.solveTriangular(at, g[0])}
			at.Drop()
			if n.wants(0) {
				out[0] = m.triangleGrad(out[1], x)
			}
			if !n.wants(1) {
				out[1].Drop()
				out[1] = nil
			}
			return out
		}
		n.made(x)
	}
	return x
}

// triangleGrad is the lower triangle of -g·x'.
func (m *Machine) triangleGrad(g, x *Tensor) *Tensor {
	t := m.Transpose(x, -2, -1)
	p := m.Matmul(g, t)
	neg := m.unary("neg", p)
	Drop(p, t)
	y := m.Empty("tril", neg.dtype, neg.Shape()...)
	neg.Drop()
	return y
}

// solveTriangular computes in place on a copy of b, which lies in memory column
// by column. Matrices that lie neither by rows nor by columns are copied too.
func (m *Machine) solveTriangular(a, b *Tensor) *Tensor {
	const op = "linalg_solve_triangular"
	x := m.byColumns(op, b)
	var copied *Tensor
	if t := m.Transpose(a, -2, -1); !a.IsContiguous() && !t.IsContiguous() {
		copied = m.byColumns(op, a)
		t.Drop()
	} else {
		t.Drop()
	}
	if depth := a.Elements() / (a.Size(-1) * a.Size(-2)); depth > cublasLoop || a.Size(-1) < wideMatrix {
		as := m.scratch(depth*8, op)
		m.Scratch(depth*8, op)
		m.unref(as)
	}
	m.Handle()
	copied.Drop()
	return x
}

// byColumns allocates a tensor of the shape of t whose matrices lie in memory
// column by column.
func (m *Machine) byColumns(op string, t *Tensor) *Tensor {
	y := m.Empty(op, t.dtype, t.Shape()...)
	last := int(y.dims) - 1
	y.stride[last], y.stride[last-1] = y.dim[last-1], 1
	return y
}
