package eager

// VectorNorm is linalg.vector_norm over one dimension, which stays with length
// one, without a derivative.
func (m *Machine) VectorNorm(x *Tensor, dim int) *Tensor {
	dim = x.axis(dim)
	shape := append([]int64(nil), x.Shape()...)
	shape[dim] = 1
	return m.reduced("linalg_vector_norm", x, x.dtype, shape, x.stride[dim] == 1)
}

// VectorNormAll is linalg.vector_norm over all elements, without a derivative.
func (m *Machine) VectorNormAll(x *Tensor) *Tensor {
	return m.reduced("linalg_vector_norm", x, x.dtype, nil, true)
}

// foreachChunk is how many elements a thread block of a foreach kernel takes.
const foreachChunk = 64 << 10

// ForeachNorm is _foreach_norm of tensors of one type: partial results of all
// chunks, as many for each tensor as the largest one has, and the norms.
func (m *Machine) ForeachNorm(ts []*Tensor) []*Tensor {
	const op = "_foreach_norm"
	var chunks int64
	for _, t := range ts {
		chunks = max(chunks, ceil(t.Elements(), foreachChunk))
	}
	wide := max(ts[0].dtype, Float32)
	parts := m.Empty(op, wide, int64(len(ts))*chunks)
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		out[i] = m.Empty(op, t.dtype)
	}
	parts.Drop()
	return out
}

// Outer is the product of a column and a row, or of stacks of them, without a
// derivative.
func (m *Machine) Outer(column, row *Tensor) *Tensor {
	shape := append([]int64(nil), column.Shape()...)
	shape[len(shape)-1] = row.Size(-1)
	y := m.Empty("mm", column.dtype, shape...)
	m.Handle()
	return y
}

// MeanDim is the mean over a dimension, which stays with length one, without a
// derivative.
func (m *Machine) MeanDim(x *Tensor, dim int) *Tensor {
	dim = x.axis(dim)
	shape := append([]int64(nil), x.Shape()...)
	shape[dim] = 1
	return m.reduced("mean", x, x.dtype, shape, x.stride[dim] == 1)
}
