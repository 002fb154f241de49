package alloc

// hintMark ends the metadata of events of a request with a hint.
const hintMark = "mallocWithAddress"

// MallocAt allocates at a given address if it is free, as PyTorch does from 2.13 on
// for a resize_ that would like to stay where it is. It reports whether it did;
// nothing is asked of the driver. Free bytes before the address in its block are
// allocated for a moment, which statistics and the trace show.
func (a *Allocator) MallocAt(size, stream, addr uint64) (bool, error) {
	if size == 0 || size >= maxRequest || addr%MinBlock != 0 {
		return false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.afterOperation()
	if !a.rules.Hints {
		return false, nil
	}
	if err := a.begin(stream); err != nil {
		return false, err
	}
	rounded := a.rules.Round(size)
	sp, expandable := a.home(a.routed(stream, 0), kindOf(rounded), stream)
	id := a.freeAt(sp, addr, rounded)
	if id == noBlock {
		return false, nil
	}
	meta := a.meta
	defer func() { a.meta = meta }()
	if a.meta = hintMark; meta != "" {
		a.meta = meta + "\n" + hintMark
	}
	a.removeFree(id)
	front := a.blocks[id].addr
	if before := addr - front; before > 0 {
		a.handOutSplit(id, before, before, true)
		a.removeFree(id) // what is left of it
	}
	a.handOut(id, size, rounded, expandable)
	if front < addr {
		return true, a.free(front)
	}
	return true, nil
}

// freeAt returns the free block that has size bytes from an address on.
func (a *Allocator) freeAt(sp *streamPool, addr, size uint64) blockID {
	for _, id := range sp.free.appendAll(nil) {
		if b := a.blocks[id].span(); b.Addr <= addr && addr < b.End() && size <= b.End()-addr {
			return id
		}
	}
	return noBlock
}
