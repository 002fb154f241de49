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
// own affair and in no recording. If that leaves room for a chunk between two
// libraries, as in the 13 runs, the first new chunk lies above all others; how
// the kernel has drawn the addresses of the libraries decides it. The model has
// no such room: of 481 recordings of small runs, made in seven sessions, 16 of
// one session come out only without it, one of another only with it, and the
// rest do not depend on it.
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

// ExternalRange is a range of addresses that something other than the allocator
// takes and keeps: a kernel, a library, the driver itself.
type ExternalRange struct {
	Bytes uint64
	// Host: a file or memory of the host is mapped there, in no chunk.
	Host bool
}

// TakeExternal takes addresses for something other than the allocator. It takes none
// of the device's memory; that is [Config].Unusable.
func (d *Device) TakeExternal(t ExternalRange) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.Bytes == 0 {
		return misuse("taking 0 bytes beside the allocator")
	}
	ok := false
	if t.Bytes <= segmentsTop-segmentsBase {
		ok = d.segments.takeExternal(t)
	}
	if !ok {
		return misuse("there are no addresses for %d bytes beside the allocator", t.Bytes)
	}
	return nil
}

func (a *addressSpace) takeExternal(t ExternalRange) bool {
	if !t.Host {
		addr, ok := a.take(t.Bytes)
		a.segments.Delete(addr)
		return ok
	}
	if a.chunks == nil {
		a.begin()
	}
	// The kernel maps it at the upper end of the highest hole. Holes are kept in
	// units of chunks, so what it leaves of a unit is lost.
	size := roundUp(t.Bytes, chunkUnit)
	end, ok := a.cutTop(size, size)
	if ok {
		a.others.add(end-size, end)
	}
	return ok
}
