package arena

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/ashlar-mem/ashlar/alloc"
)

// Allocator is where an arena gets its memory. Addresses are multiples of 512.
type Allocator interface {
	Malloc(size, stream uint64) (uint64, error)
	Free(addr uint64) error
}

// Options say how an arena divides its memory. The zero value is usable.
type Options struct {
	Stream uint64
	Chunk  uint64 // what is asked of the allocator at once; 0 is 32 MiB
	Large  uint64 // requests above it get a block of their own; 0 is a quarter of Chunk
	Align  uint64 // of addresses, a power of two up to 512; 0 is 512
}

// ErrClosed is returned by an arena that was closed.
var ErrClosed = errors.New("arena: it is closed")

// ErrScope is returned by [Scope.End] for a scope that has ended already, or
// inside which another one is still open.
var ErrScope = errors.New("arena: the scope is not the innermost one that is open; end scopes in the reverse order of their beginning, and each once")

// block is memory from the allocator.
type block struct{ addr, size uint64 }

// Arena hands out memory from chunks. It is not safe for concurrent use.
type Arena struct {
	next, end  uint64 // what is left of the current chunk
	mask       uint64 // Align-1
	used, peak uint64

	from    Allocator
	o       Options
	chunks  []block
	current int     // index of the chunk in use; -1 before the first
	large   []block // requests with a block of their own
	scopes  int     // that are open
	round   uint64  // how often Reset was called
	closed  bool
}

// New makes an arena. It takes no memory before the first request.
func New(from Allocator, o Options) (*Arena, error) {
	if o.Chunk == 0 {
		o.Chunk = 32 << 20
	}
	if o.Large == 0 {
		o.Large = o.Chunk / 4
	}
	if o.Align == 0 {
		o.Align = alloc.MinBlock
	}
	switch {
	case from == nil:
		return nil, errors.New("arena: no allocator is given to take memory from")
	case bits.OnesCount64(o.Align) != 1 || o.Align > alloc.MinBlock:
		return nil, fmt.Errorf("arena: Align is %d, it must be a power of two up to %d", o.Align, alloc.MinBlock)
	case o.Chunk%o.Align != 0:
		return nil, fmt.Errorf("arena: Chunk is %d, it must be a multiple of Align, %d", o.Chunk, o.Align)
	case o.Large > o.Chunk:
		return nil, fmt.Errorf("arena: Large is %d, it must be at most Chunk, %d", o.Large, o.Chunk)
	}
	return &Arena{from: from, o: o, mask: o.Align - 1, current: -1}, nil
}

// Alloc returns the address of size bytes that are valid until the innermost open
// scope ends, or until Reset. A size of 0 gives address 0. An error is the
// allocator's; the arena is then as it was.
func (a *Arena) Alloc(size uint64) (uint64, error) {
	n := (size + a.mask) &^ a.mask
	if n-1 >= a.end-a.next || size > a.o.Large { // also for 0, and for what overflows
		return a.slow(size, n)
	}
	addr := a.next
	a.next += n
	a.count(n)
	return addr, nil
}

func (a *Arena) count(n uint64) {
	a.used += n
	a.peak = max(a.peak, a.used)
}

// slow serves what the current chunk cannot.
func (a *Arena) slow(size, n uint64) (uint64, error) {
	switch {
	case a.closed:
		return 0, ErrClosed
	case size == 0:
		return 0, nil
	case size > a.o.Large:
		return a.allocLarge(max(size, n)) // n is 0 if the rounding overflows
	}
	if a.current+1 == len(a.chunks) {
		c, err := a.take(a.o.Chunk)
		if err != nil {
			return 0, err
		}
		a.chunks = append(a.chunks, c)
	}
	a.enter(a.current+1, 0)
	addr := a.next
	a.next += n
	a.count(n)
	return addr, nil
}

func (a *Arena) allocLarge(n uint64) (uint64, error) {
	b, err := a.take(n)
	if err != nil {
		return 0, err
	}
	a.large = append(a.large, b)
	a.count(n)
	return b.addr, nil
}

// take asks the allocator for memory.
func (a *Arena) take(size uint64) (block, error) {
	addr, err := a.from.Malloc(size, a.o.Stream)
	if err != nil {
		return block{}, err
	}
	if addr&a.mask != 0 {
		return block{}, errors.Join(fmt.Errorf("arena: the allocator returned %#x, which is no multiple of %d", addr, a.o.Align), a.from.Free(addr))
	}
	return block{addr, size}, nil
}

// enter makes a chunk the current one, from an offset on.
func (a *Arena) enter(chunk int, offset uint64) {
	a.current, a.next, a.end = chunk, 0, 0
	if chunk >= 0 {
		c := a.chunks[chunk]
		a.next, a.end = c.addr+offset, c.addr+c.size
	}
}

// Reset frees everything at once and ends all scopes. Chunks stay with the arena;
// large blocks go back to the allocator. After an error, which is the
// allocator's, the arena is empty all the same.
func (a *Arena) Reset() error {
	if a.closed {
		return ErrClosed
	}
	a.round++
	a.scopes = 0
	a.used = 0
	if len(a.chunks) > 0 {
		a.enter(0, 0)
	}
	return a.freeLarge(0)
}

// freeLarge gives large blocks back, down to the first keep of them.
func (a *Arena) freeLarge(keep int) (err error) {
	for _, b := range a.large[keep:] {
		if e := a.from.Free(b.addr); e != nil {
			err = errors.Join(err, e)
		}
	}
	a.large = a.large[:keep]
	return err
}

// Trim gives the chunks that hold nothing back to the allocator. It returns how
// many bytes they were.
func (a *Arena) Trim() (freed uint64, err error) {
	keep := a.current + 1
	if a.used == 0 && a.scopes == 0 { // the current one is empty, too, and no scope points into it
		keep = 0
		a.enter(-1, 0)
	}
	for _, c := range a.chunks[keep:] {
		freed += c.size
		if e := a.from.Free(c.addr); e != nil {
			err = errors.Join(err, e)
		}
	}
	a.chunks = a.chunks[:keep]
	return freed, err
}

// Close gives everything back to the allocator. Closing twice is allowed.
func (a *Arena) Close() error {
	if a.closed {
		return nil
	}
	err := a.Reset()
	_, trimmed := a.Trim()
	a.closed = true
	return errors.Join(err, trimmed)
}
