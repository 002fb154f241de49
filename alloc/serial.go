package alloc

// Handle names an allocated block until it is freed; 0 names none.
type Handle uint32

// Serial is the entry to an allocator for a caller that is alone with it, as
// the replay of a trace is: it takes no lock and names blocks by handles, not
// by addresses. The allocator's other methods may be called in between; while
// a Serial method runs nobody else may use the allocator, except the reclaimers
// that it calls. A request that fails is not tried again: [WithOOMRetry] has no
// effect.
type Serial struct{ a *Allocator }

// Serial returns the allocator's unlocked entry.
func (a *Allocator) Serial() Serial { return Serial{a} }

// Malloc is [Allocator.Malloc] without the lock. A size of 0 gives handle 0.
func (s Serial) Malloc(size, stream uint64) (Handle, error) {
	a := s.a
	if size == 0 {
		return 0, nil
	}
	if size >= maxRequest {
		return 0, &OutOfMemoryError{Device: a.device, Requested: size, TooLarge: true}
	}
	id, err := a.mallocBlock(size, stream, 0, false)
	if err != nil {
		a.countFailure(err)
	}
	a.afterOperation()
	if err != nil {
		return 0, a.notifyOOM(err)
	}
	return Handle(id), nil
}

// Free is [Allocator.Free] without the lock. Handle 0 is ignored.
func (s Serial) Free(h Handle) error {
	if h == 0 {
		return nil
	}
	a := s.a
	if b := &a.blocks[h]; b.state != stateAllocated {
		return &InvalidPointerError{Addr: b.addr}
	}
	a.table.drop(a.blocks[h].addr, blockID(h))
	err := a.freeBlock(blockID(h))
	a.afterOperation()
	return err
}

// FreeAfter frees a block that a stream is still using.
func (s Serial) FreeAfter(h Handle, stream uint64) error {
	if h != 0 && s.a.blocks[h].state == stateAllocated {
		s.a.recordStream(blockID(h), stream)
	}
	return s.Free(h)
}

// Find returns the handle of the allocated block at an address, or 0.
func (s Serial) Find(addr uint64) Handle { return Handle(s.a.table.lookup(addr, s.a.blocks)) }

// Size returns the size of an allocated block.
func (s Serial) Size(h Handle) uint64 { return s.a.blocks[h].size }

// Address returns where an allocated block begins.
func (s Serial) Address(h Handle) uint64 { return s.a.blocks[h].addr }

// Totals are the sums of bytes at one moment.
type Totals struct {
	Reserved, Allocated, Active, Requested uint64
}

// Totals returns the sums as they are now.
func (s Serial) Totals() Totals {
	x, y := &s.a.stats.kinds[small], &s.a.stats.kinds[large]
	return Totals{
		Reserved:  s.a.reserved,
		Allocated: uint64(x.current(statAllocatedBytes) + y.current(statAllocatedBytes)),
		Active:    uint64(x.current(statActiveBytes) + y.current(statActiveBytes)),
		Requested: uint64(x.current(statRequestedBytes) + y.current(statRequestedBytes)),
	}
}

// LeastRefused returns the least reserved total that the limit refused so far, 0
// if it refused none. Under any higher limit below that, everything so far would
// have gone the same way, as long as no garbage is collected.
func (s Serial) LeastRefused() uint64 { return s.a.refused }

// LargestFree returns the size of the largest free block, whatever its pool
// and stream.
func (s Serial) LargestFree() uint64 {
	var largest uint64
	for _, h := range s.a.streamPools {
		if h == nil {
			continue
		}
		if id := h.free.before(maxBlockSize, 0); id != noBlock {
			largest = max(largest, s.a.blocks[id].size)
		}
	}
	return largest
}
