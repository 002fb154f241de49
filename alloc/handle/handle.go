package handle

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
)

// Allocator is where a table gets its memory: an alloc.Allocator, or a tenant of
// alloc/tenant.
type Allocator interface {
	Malloc(size, stream uint64) (uint64, error)
	Free(addr uint64) error
}

// Options of a table. The zero value is usable.
type Options struct {
	Debug bool // remember the stack of every holder
}

// ErrReleased is returned for a buffer that its holder has released already.
var ErrReleased = errors.New("handle: the buffer was released before")

// Table makes buffers over one allocator.
type Table struct {
	from  Allocator
	debug *debug // nil without Options.Debug

	mu    sync.Mutex
	slots []*slot // all that were made
	spare []*slot
}

// slot counts the holders of one piece of memory, and later of another one.
type slot struct {
	// state is the generation, which each new memory raises, and the number of
	// holders, in 32 bits each. One word, so that a stale buffer cannot add a
	// holder to what took its place.
	state atomic.Uint64
	t     *Table

	size         atomic.Uint64    // that a stale buffer may read
	addr, stream uint64           // under Table.mu
	held         map[uint32]Stack // the holders, with Debug; under debug.mu
}

const oneGeneration = 1 << 32

func generation(state uint64) uint32 { return uint32(state >> 32) }
func holders(state uint64) uint32    { return uint32(state) }

// Buffer is a holder of memory. The zero Buffer holds nothing.
type Buffer struct { // with more than four fields it would not be passed in registers
	s          *slot
	addr       uint64
	generation uint32
	holder     uint32 // which one; 0 without Debug
}

// New makes a table.
func New(from Allocator, o Options) *Table {
	t := &Table{from: from}
	if o.Debug {
		t.debug = &debug{}
	}
	return t
}

// Malloc allocates memory and returns its first holder. An error is the
// allocator's.
func (t *Table) Malloc(size, stream uint64) (Buffer, error) {
	addr, err := t.from.Malloc(size, stream)
	if err != nil {
		return Buffer{}, err
	}
	t.mu.Lock()
	var s *slot
	if n := len(t.spare); n > 0 {
		s, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		s = &slot{t: t}
		t.slots = append(t.slots, s)
	}
	s.addr, s.stream = addr, stream
	s.size.Store(size)
	state := s.state.Load() + 1 // nobody else changes a slot without holders
	b := Buffer{s: s, addr: addr, generation: generation(state)}
	if t.debug != nil {
		b.holder = t.debug.add(s)
	}
	s.state.Store(state)
	t.mu.Unlock()
	return b, nil
}

// Addr returns the address of the memory.
func (b Buffer) Addr() uint64 { return b.addr }

// Size returns how many bytes were asked for. The zero Buffer has none.
func (b Buffer) Size() uint64 {
	if b.s == nil {
		return 0
	}
	return b.s.size.Load()
}

// Retain returns one more holder of the memory.
func (b Buffer) Retain() (Buffer, error) {
	if b.s == nil || !b.s.retain(b.generation) {
		return Buffer{}, ErrReleased
	}
	if b.holder != 0 {
		b.holder = b.s.t.debug.add(b.s)
	}
	return b, nil
}

// retain adds a holder if the generation still has one.
func (s *slot) retain(g uint32) bool {
	for {
		state := s.state.Load()
		if generation(state) != g || holders(state) == 0 {
			return false
		}
		if holders(state) == math.MaxUint32 {
			panic("handle: a buffer has 2^32-1 holders")
		}
		if s.state.CompareAndSwap(state, state+1) {
			return true
		}
	}
}

// Release ends this holder. The last one frees the memory; an error other than
// [ErrReleased] is then the allocator's, and the buffer is released all the same.
func (b Buffer) Release() error {
	s := b.s
	if s == nil || b.holder != 0 && !s.t.debug.remove(s, b.holder) {
		return ErrReleased
	}
	for {
		state := s.state.Load()
		if generation(state) != b.generation || holders(state) == 0 {
			return ErrReleased
		}
		if holders(state) > 1 {
			if s.state.CompareAndSwap(state, state-1) {
				return nil
			}
			continue
		}
		if s.state.CompareAndSwap(state, state-1+oneGeneration) {
			return s.t.free(s, b.addr)
		}
	}
}

// free gives memory without holders back, and its slot to the next.
func (t *Table) free(s *slot, addr uint64) error {
	t.mu.Lock()
	if generation(s.state.Load()) != 0 { // all were used up: stale buffers of the first could fit again
		t.spare = append(t.spare, s)
	}
	t.mu.Unlock()
	return t.from.Free(addr)
}

// Weak names memory and keeps nothing alive. The zero Weak names nothing.
type Weak struct{ b Buffer }

// Weak returns a weak handle of the buffer's memory. Those of one memory are
// equal.
func (b Buffer) Weak() Weak {
	b.holder = 0
	return Weak{b}
}

// Retain returns a new holder of the memory, or false if it has none any more.
func (w Weak) Retain() (Buffer, bool) {
	b := w.b
	if b.s == nil || !b.s.retain(b.generation) {
		return Buffer{}, false
	}
	if d := b.s.t.debug; d != nil {
		b.holder = d.add(b.s)
	}
	return b, true
}
