package sim

// What a process of PyTorch has taken when its program begins. It was seen by
// tracing the system calls of 13 runs (H200, driver 580.159.04, CUDA 13,
// PyTorch 2.11), each of which had run one kernel and emptied the cache before
// it built a model. All 13 were alike:
//
//   - A chunk of 96 MiB has 22 MiB left; the rest is the context's.
//   - Below it are 416 MiB of free addresses. The memory for the threads' stacks
//     was there until the first kernel asked for larger ones.
//   - Below that a chunk of 512 MiB, newer than the first, holds the larger
//     ones and has 6 MiB left.
//
// Three recordings of runs that load their libraries later, after the first
// kernel, show the same two rests. In them the free addresses between the chunks
// are not used: libraries are mapped there. What a process maps besides is its
// own affair and in no recording; a chunk that finds room between two libraries
// lies above all others.
const (
	contextChunk = 96 << 20
	contextLeft  = 22 << 20
	stacksChunk  = 416 << 20
	newStacks    = 512 << 20
	newLeft      = 6 << 20
)

// beginStarted makes the chunks of a process that has run a kernel.
func (a *addressSpace) beginStarted() {
	c, _ := a.addChunk(contextChunk)
	a.addGap(c, c.end-contextLeft, c.end)
	old, _ := a.addChunk(stacksChunk)
	c, _ = a.addChunk(newStacks)
	a.addGap(c, c.end-newLeft, c.end)
	a.removeChunk(old)
}

// Occupy takes addresses for memory that is none of the allocator's and stays:
// kernels, libraries and the driver get theirs from the same chunks. Of the
// physical memory it takes nothing; that is [Config].Unusable.
func (d *Device) Occupy(size uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size == 0 {
		return misuse("occupying 0 bytes")
	}
	addr, ok := d.segments.take(size)
	if !ok {
		return misuse("there are no addresses for %d bytes beside the allocator", size)
	}
	delete(d.segments.segments, addr)
	return nil
}
