package eager

// Embedding looks rows of a table up.
func (m *Machine) Embedding(table, ids *Tensor) *Tensor {
	n := m.node("EmbeddingBackward0", table)
	n.save(ids)
	shape := append(append([]int64(nil), ids.Shape()...), table.dim[1])
	y := m.Empty("embedding", table.dtype, shape...)
	if n != nil {
		rows, width, d := table.dim[0], table.dim[1], table.dtype
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.embeddingGrad(n.unpack(0), rows, width, d)}
		}
		n.made(y)
	}
	return y
}

const (
	// fewIndices is up to how many ids are added one by one.
	fewIndices = 3072
	// rowsPerThread is how many sorted ids a partial sum covers.
	rowsPerThread = 10
)

// embeddingGrad is embedding_dense_backward: many ids are sorted first, and
// rows of the same id are added up in parts.
func (m *Machine) embeddingGrad(ids *Tensor, rows, width int64, d DType) *Tensor {
	const op = "embedding_dense_backward"
	count := ids.Elements()
	if count <= fewIndices {
		return m.Empty(op, d, rows, width)
	}
	index := ids.dtype.Size()
	var held []*storage
	take := func(bytes int64) *storage {
		s := m.scratch(bytes, op)
		held = append(held, s)
		return s
	}
	take(count * index) // sorted ids
	take(count * index) // where they were
	range_ := m.scratch(count*index, op)
	m.Scratch(sortScratch(count, index), op)
	m.unref(range_)
	y := m.Empty(op, d, rows, width)
	segments := min(count, rows)
	take(segments * index) // where the segments begin
	take(8)
	m.Scratch(count*index, op)
	take(segments * index)
	take(segments * index)
	take(8)
	parts := count/rowsPerThread + segments
	take(parts * index)
	take(parts * width * 4)
	for i := len(held) - 1; i >= 0; i-- {
		m.unref(held[i])
	}
	return y
}

// sortScratch is about what a radix sort of pairs takes: a second copy of keys
// and values, and counters.
func sortScratch(count, index int64) int64 { return 2*count*index + 16<<10 }
