package alloc

import (
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Place says what memory lies behind a granule of an expandable segment.
type Place uint8

// The places. Only what is on the device is reserved memory, and serves ordinary
// requests.
const (
	OnDevice Place = iota
	OnHost         // memory of the host: slow, but there
	Nowhere        // no memory: what lay there was dropped, and its addresses are kept
)

// Spiller serves requests that would fail. See [Placer.SetSpiller].
type Spiller interface {
	// MakeRoom is called without the allocator's lock, on the goroutine of the request,
	// after cached memory was released and all retries failed. It returns how many bytes it moved;
	// if there are any the request is tried again. As the hook of [WithOOMRetry] it must not allocate.
	MakeRoom(*OutOfMemoryError) (moved uint64)

	// MapHost puts memory of the host behind a range of the driver's, as Map puts the
	// device's there. It is called under the lock, for a request that still fails. An
	// error that wraps [driver.ErrOutOfMemory] lets the request fail as it would have.
	MapHost(addr, size, granule uint64) error

	// Served is called without the lock, after a request of so many bytes that would have failed: what MakeRoom moved
	// made room for it, or, if moved is 0, it lies in the host's memory.
	Served(size, moved uint64)

	// ComeHome is called without the lock, after a request, when memory of the host may come home in the middle of a step: so
	// many bytes more have room on the device until the step's end, if it is like those before. It reports whether
	// there was anything that could come.
	ComeHome(room uint64) bool
}

// Placer is the entry to an allocator for whoever changes what memory lies behind
// the addresses of expandable segments: package alloc/tier.
type Placer struct{ a *Allocator }

// Placer returns the allocator's entry for whoever moves its memory.
func (a *Allocator) Placer() Placer { return Placer{a} }

// SetSpiller makes the allocator turn to s when a request of the default pools is
// about to fail and expandable segments are on; nil ends it.
func (p Placer) SetSpiller(s Spiller) {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	if p.a.spiller = s; s == nil {
		p.a.spilled, p.a.course = false, course{}
	}
}

// Hold calls f under the allocator's lock, after the borrower's blocks and freed
// blocks whose streams have passed them were taken back. f must not call the
// allocator. While a route is active the error is a [*RouteActiveError].
func (p Placer) Hold(f func(*Placement) error) error {
	a := p.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.capturingAny() {
		return &RouteActiveError{Doing: "moving memory"}
	}
	if _, err := a.recall(true); err != nil {
		return err
	}
	if err := a.processEvents(); err != nil {
		return err
	}
	err := f(&Placement{a})
	a.afterOperation()
	return err
}

// Look calls f under the allocator's lock. f must not call the allocator, and change
// nothing.
func (p Placer) Look(f func(*Placement)) {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	f(&Placement{p.a})
}

// Streams returns the streams that memory was asked for, in no order; one may come twice.
func (p Placer) Streams() (streams []uint64) {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	for _, sp := range p.a.streamPools {
		if sp != nil {
			streams = append(streams, sp.stream)
		}
	}
	return streams
}

// Placement is an allocator whose lock is held.
type Placement struct{ a *Allocator }

// Granule is one handle of an expandable segment, with memory behind it, or of which
// the memory was dropped.
type Granule struct {
	Addr, Size uint64
	Place      Place
	Private    bool   // of a private pool
	Live       uint64 // bytes of it in blocks that are in use, or wait for other streams
	Blocks     []Held // those blocks; they may reach beyond it. Valid until the next granule
	Since      uint32 // how many blocks were handed out after the latest of them
}

// Held is a block that is in use, or waits for other streams.
type Held struct {
	Span
	Serial uint32 // differs from that of a block that was there before
}

func (b *block) held() Held { return Held{b.span(), b.entered} }

// Granules calls f for the granules in no order of segments, but ascending in each,
// until it returns false.
func (p *Placement) Granules(f func(*Granule) bool) {
	a := p.a
	var h Granule
	for i := range a.segments {
		s := &a.segments[i]
		if !s.expandable() {
			continue
		}
		private := a.streamPools[s.streamPool].pool.private != nil
		begun := false
		for id := s.head; id != noBlock; id = a.blocks[id].next {
			b := &a.blocks[id]
			if b.state == stateUnmapped {
				continue
			}
			first := s.base + (b.addr-s.base)/s.granule*s.granule
			for at := first; at < b.addr+b.size; at += s.granule {
				if !begun || at != h.Addr {
					if begun && !f(&h) {
						return
					}
					h = Granule{Addr: at, Size: s.granule, Place: a.places[at], Private: private, Blocks: h.Blocks[:0], Since: math.MaxUint32}
					begun = true
				}
				if b.state == stateAllocated || b.state == statePending {
					h.Live += min(b.addr+b.size, at+s.granule) - max(b.addr, at)
					h.Blocks = append(h.Blocks, b.held())
					h.Since = min(h.Since, a.served-b.entered)
				}
			}
		}
		if begun && !f(&h) {
			return
		}
	}
}

// Plain returns the bytes in use of segments that are not expandable.
func (p *Placement) Plain() uint64 {
	var bytes uint64
	for i := range p.a.blocks {
		if b := &p.a.blocks[i]; !b.expandable && (b.state == stateAllocated || b.state == statePending) {
			bytes += b.size
		}
	}
	return bytes
}

// Block returns the block in use that an address lies in.
func (p *Placement) Block(addr uint64) (Held, bool) {
	a := p.a
	if id := a.table.lookup(addr, a.blocks); id != noBlock && addr != 0 {
		return a.blocks[id].held(), true
	}
	for i := range a.segments {
		s := &a.segments[i]
		if s.size == 0 || addr < s.base || addr-s.base >= s.size {
			continue
		}
		for id := s.head; id != noBlock; id = a.blocks[id].next {
			if b := &a.blocks[id]; addr < b.addr+b.size {
				return b.held(), b.state == stateAllocated
			}
		}
	}
	return Held{}, false
}

// PlaceOf calls f for the parts of a range, which lies in an expandable segment, by
// what lies behind them.
func (p *Placement) PlaceOf(r Span, f func(part Span, place Place)) {
	seg := p.a.segmentAt(r.Addr)
	if seg == nil || !seg.expandable() {
		f(r, OnDevice)
		return
	}
	for at := r.Addr; at < r.End(); {
		g := seg.base + (at-seg.base)/seg.granule*seg.granule
		end := min(r.End(), g+seg.granule)
		f(Span{at, end - at}, p.a.places[g])
		at = end
	}
}

// Reserved returns the bytes of device memory, and the cap on them if there is one.
func (p *Placement) Reserved() (bytes, limit uint64, limited bool) {
	return p.a.reserved, p.a.limit, p.a.limited
}

// Claim books device memory that is to come behind granules which Move names then. The error wraps
// [driver.ErrOutOfMemory] if a limit does not allow it.
func (p *Placement) Claim(bytes uint64) error {
	a := p.a
	if taken := a.reserved + a.claimed; a.limited && (taken > a.limit || bytes > a.limit-taken) {
		return fmt.Errorf("%w: %s more than the %s reserved would be above the limit of %s",
			driver.ErrOutOfMemory, units.Size(bytes), units.Size(taken), units.Size(a.limit))
	}
	if b, ok := a.dev.(driver.Booker); ok {
		if err := b.Claim(bytes); err != nil {
			return err
		}
	}
	a.claimed += bytes
	return nil
}

// Unclaim gives back what was claimed and did not come.
func (p *Placement) Unclaim() {
	p.a.book(-int64(p.a.claimed))
	p.a.claimed = 0
}

// Move notes that other memory lies behind a range of granules. The caller has moved the bytes. It is refused for private pools.
func (p *Placement) Move(r Span, to Place) error {
	a := p.a
	seg := a.segmentAt(r.Addr)
	if seg == nil || !seg.expandable() || (r.Addr-seg.base)%seg.granule != 0 || r.Size%seg.granule != 0 || r.End() > seg.base+seg.size {
		return fmt.Errorf("%d bytes at %#x are no granules of an expandable segment", r.Size, r.Addr)
	}
	if a.streamPools[seg.streamPool].pool.private != nil {
		return fmt.Errorf("the granules at %#x belong to a private pool", r.Addr)
	}
	a.move(seg, r, to)
	return nil
}

// Release gives the granules back to the driver that are not on the device and that
// no block uses.
func (p *Placement) Release() error { return p.a.releaseWithheld() }

// Shrink gives cached memory of the device back to the driver, until that many bytes are free or there
// are no whole granules without a block any more.
func (p *Placement) Shrink(bytes uint64) error { return p.a.shrink(bytes) }

// Served returns how many blocks were handed out; it may begin again at 0.
func (p *Placement) Served() uint32 { return p.a.served }

// Mark begins a step: until a request of it is spilled, cached memory is released
// before another one is. It returns what MostInUse does.
func (p *Placement) Mark() (most uint64) {
	p.a.spilled = false
	p.a.course.mark(p.a.served)
	return p.MostInUse()
}

// InUse returns the bytes of the device that are in use, or wait for other streams.
func (p *Placement) InUse() uint64 { return p.a.inUse() }

// MostInUse returns the most bytes of the device that were in use at once since it was asked last, if there was a spiller.
func (p *Placement) MostInUse() (most uint64) {
	most, p.a.mostInUse = p.a.mostInUse, p.a.inUse()
	return most
}
