package eager

// FreeStorage is untyped_storage().resize_(0): the memory of t and of all views
// of it is given back, while they stay where they are.
func (m *Machine) FreeStorage(t *Tensor) {
	if id := t.store.id; id != noEntry {
		t.store.id = noEntry
		m.Ledger.Free(id)
	}
}

// AllocStorage is untyped_storage().resize_(bytes) of an empty storage.
func (m *Machine) AllocStorage(t *Tensor, bytes int64, op string) {
	if t.store.id == noEntry {
		t.store.id = m.alloc(bytes, op).id
	}
}

// SetDType changes the type of a leaf whose storage is empty.
func (t *Tensor) SetDType(d DType) { t.dtype = d }

// BeforeBackward has f called when the gradient of t is there, before the op
// that made t runs its derivative.
func (t *Tensor) BeforeBackward(f func()) {
	if n := t.node; n != nil {
		n.before = func([]*Tensor) { f() }
	}
}

// AfterBackward is x, with f called when the gradient of what it returns is
// there: all that used it has run its derivative by then.
func (m *Machine) AfterBackward(x *Tensor, f func()) *Tensor {
	if m.noGrad || !x.needs {
		return x.Keep()
	}
	return m.viewNode("PostBackward", x, x.Shape(), x.stride, func(_ *Node, g []*Tensor) []*Tensor {
		f()
		return []*Tensor{g[0].Keep()}
	})
}

// Kernels that copy many tensors at once take tables of addresses and of the
// thread blocks that belong to each tensor, as numbers of 8 bytes.
const (
	copyTile  = 2048 // bytes that a block copies
	copyWaves = 2    // how many blocks there are for each that fits
	copyBlock = 128  // threads
)

// ChunkCatScratch is the table of _chunk_cat, by the bytes of each tensor's
// part.
func (m *Machine) ChunkCatScratch(parts []int64) {
	n := 6*int64(len(parts)) + 2
	for _, p := range parts {
		n += ceil(p, copyTile)
	}
	m.Scratch(8*n, "_chunk_cat")
}

// SplitCopyScratch is the table of split_with_sizes_copy into tensors that have
// a part of some bytes from each of the ranks.
func (m *Machine) SplitCopyScratch(parts []int64, ranks int64) {
	var blocks int64
	for _, p := range parts {
		blocks += ceil(p, copyTile)
	}
	most := m.Device.Multiprocessors * m.Device.ThreadsPerProc / copyBlock * copyWaves
	factor := ceil(blocks*ranks, most)
	chunks := int64(1)
	for chunks*chunks < factor {
		chunks++
	}
	each := ceil(factor, min(chunks, ranks))
	n := 4*int64(len(parts)) + 1
	for _, p := range parts {
		n += ceil(p, copyTile*each)
	}
	m.Scratch(8*n, "split_with_sizes_copy")
}
