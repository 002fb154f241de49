package eager

// Embedding looks rows of a table up.
func (m *Machine) Embedding(table, ids *Tensor) *Tensor {
	n := m.node("EmbeddingBackward0", table)
	n.save(ids)
	flat := m.contiguousCopy(ids)
	shape := append(append([]int64(nil), ids.Shape()...), table.dim[1])
	y := m.Empty("embedding", table.dtype, shape...)
	flat.Drop()
	if n != nil {
		rows := table.dim[0]
		n.apply = func(n *Node, g []*Tensor) []*Tensor {
			return []*Tensor{m.embeddingGrad(g[0], n.unpack(0), rows)}
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
	// uniqueTile and sumTile are how many ids a block of CUB's takes that looks
	// for where ids begin, and that adds up.
	uniqueTile = 640 * 7
	sumTile    = 128 * 7
)

// embeddingGrad is embedding_dense_backward for a table of so many rows: many
// ids are sorted first, then the gradients of a segment, which are those of one
// id, are added up in parts.
func (m *Machine) embeddingGrad(grad, indices *Tensor, rows int64) *Tensor {
	const op = "embedding_dense_backward"
	ids := m.contiguousCopy(indices)
	g := m.contiguousCopy(grad)
	defer Drop(g, ids)
	width, count, index := g.Size(-1), ids.Elements(), ids.dtype.Size()
	if count <= fewIndices {
		return m.Empty(op, g.dtype, rows, width)
	}
	var held []*storage
	take := func(bytes int64) { held = append(held, m.scratch(bytes, op)) }
	take(count * index) // sorted ids
	take(count * index) // where they were
	numbers := m.scratch(count*index, op)
	m.Scratch(radixScratch(count, 8*index), op)
	m.unref(numbers)
	y := m.Empty(op, g.dtype, rows, width)
	take(count * index) // where the segments begin
	take(8)             // how many there are
	keys := m.scratch(count*index, op)
	m.Scratch(tileStates(count, uniqueTile), op)
	m.unref(keys)
	segments := min(count, rows)
	take(segments * index) // how many parts each has
	take(segments * index) // and the sum of those before
	m.Scratch(tileStates(segments, sumTile), op)
	take(8)
	parts := count/rowsPerThread + segments
	take(parts * index) // where the parts begin
	wide := max(g.dtype, Float32).Size()
	switch {
	case !m.Device.partsAtOnce(segments, parts, width):
		take(parts * width * wide)
	case g.dtype.Size() < wide:
		take(parts * index) // the segments of the parts
		take(rows * width * wide)
	default:
		take(parts * index)
	}
	for i := len(held) - 1; i >= 0; i-- {
		m.unref(held[i])
	}
	return y
}

// partsAtOnce reports whether all parts are added to the table at once: there are
// too few segments for the parts of each to be added up by a block of its own.
func (d Device) partsAtOnce(segments, parts, width int64) bool {
	const (
		mostThreads = 1024
		eachProc    = 4 // blocks that keep a multiprocessor busy
	)
	warped := ceil(width, warpSize) * warpSize
	grid := ceil(segments*warped, min(warped, mostThreads))
	return grid < d.Multiprocessors*eachProc && parts > 4*grid
}
