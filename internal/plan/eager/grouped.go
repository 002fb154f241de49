package eager

// Grouped matrix products: one product for every expert, on the rows of its
// tokens.

const (
	// groupArguments is what the kernel is told of each expert beside three
	// pointers: three strides and three sizes.
	groupArguments = 3*8 + 3*4
	// groupWorkspace is the descriptors of a block's four matrices.
	groupWorkspace = 4 * 128
)

// GroupedMM is grouped_mm(a, b, offs=offsets): rows of a [rows, in] by matrices
// b [experts, in, out], where offsets says at which row the next expert begins.
func (m *Machine) GroupedMM(a, b, offsets *Tensor) *Tensor {
	n := m.node("GroupedMmBackward0", a, b)
	if n != nil {
		n.saveIf(0, b)
		n.save(offsets)
		n.saveIf(1, a)
	}
	y := m.Empty("grouped_mm", a.dtype, a.dim[0], b.dim[2])
	m.groupedKernel(a.dtype, b.dim[0])
	if n != nil {
		experts, in, out, byColumns := b.dim[0], b.dim[1], b.dim[2], columns(b)
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			n.unpack(0)
			n.unpack(1)
			n.unpack(2)
			grads := make([]*Tensor, 2)
			if n.wants(1) {
				grads[1] = m.groupedWeight(g[0].dtype, experts, in, out, byColumns)
			}
			if n.wants(0) {
				grads[0] = m.Empty("grouped_mm", g[0].dtype, g[0].dim[0], in)
				m.groupedKernel(g[0].dtype, experts)
			}
			return grads
		}
		n.made(y)
	}
	return y
}

// groupedWeight is the gradient of the matrices, which lie in memory as they do.
func (m *Machine) groupedWeight(d DType, experts, in, out int64, byColumns bool) *Tensor {
	defer m.groupedKernel(d, experts)
	if !byColumns {
		return m.Empty("grouped_mm", d, experts, in, out)
	}
	t := m.Empty("grouped_mm", d, experts, out, in)
	defer t.Drop()
	return m.Transpose(t, 1, 2)
}

// groupedKernel is the memory of the kernel for bf16 on Hopper and Blackwell.
// Other types and devices multiply expert by expert with cuBLAS.
func (m *Machine) groupedKernel(d DType, experts int64) {
	const op = "grouped_mm"
	if generation := m.Device.Capability / 10; d != BFloat16 || generation != 9 && generation != 10 {
		m.Handle()
		return
	}
	pointers := ceil(experts, 2) * 2 * 3 * 8
	arguments := m.scratch(pointers+experts*groupArguments, op)
	m.Scratch(groupWorkspace*m.Device.Multiprocessors, op)
	m.unref(arguments)
}
