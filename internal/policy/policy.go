package policy

import (
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Policy is an allocator.
type Policy interface {
	// Malloc hands out a block. Where memory is short it trims and tries again; the
	// error is then an *[OutOfMemoryError].
	Malloc(size uint64, at Place) (Block, error)
	// Free takes a block back. If other streams use it, it is kept until they are
	// done.
	Free(b Block) error
	// RecordStream says that a stream uses a block beside the one it was made for.
	RecordStream(b Block, stream uint64) error
	// Synchronize says that all streams have done their work.
	Synchronize() error
	// Trim gives back to the driver what is free and can be given back.
	Trim() error
	// Stats returns the statistics.
	Stats() Stats
	// Check looks for contradictions in the allocator's state.
	Check() error
}

// Block names a block that was handed out.
type Block uint64

// Place is what a block is for: a stream, and a private pool, 0 if none.
type Place struct{ Stream, Pool uint64 }

// Stats are the bytes of an allocator now and at the peak of what it reserves, and
// the calls of the driver that gave or took memory.
type Stats struct {
	Reserved, Given, Requested uint64 // Given: of blocks handed out, or waiting for streams
	Blocks                     int    // handed out or waiting
	Peak                       Peak
	DeviceAllocs, DeviceFrees  int64
}

// Peak is the moment at which most was reserved, the first if there are several.
type Peak struct{ Reserved, Given, Requested uint64 }

// ErrNotAllocated is wrapped by the error of a call that names a block which is
// not handed out.
var ErrNotAllocated = errors.New("no such block is handed out")

// OutOfMemoryError says that a request cannot be served.
type OutOfMemoryError struct {
	Size, Reserved, Given, Limit uint64 // Limit is 0 if there is none
}

func (e *OutOfMemoryError) Error() string {
	text := fmt.Sprintf("%v: a request for %s with %s reserved, %s of it handed out", driver.ErrOutOfMemory, units.Size(e.Size), units.Size(e.Reserved), units.Size(e.Given))
	if e.Limit > 0 {
		text += ", under a limit of " + units.Size(e.Limit)
	}
	return text
}

func (e *OutOfMemoryError) Unwrap() error { return driver.ErrOutOfMemory }

// Options say how a strategy is to work.
type Options struct {
	// Limit is the cap on reserved bytes; 0 is none.
	Limit uint64
	// Exact makes the fits neither round requests nor grow by more than is missing:
	// for placement problems, which are about bytes.
	Exact bool
	// Region returns the size of the region of BFC with a fixed one at a place.
	Region func(Place) uint64
}

// heap is a strategy at work, for one place or for several.
type heap interface {
	// take finds a block of at least size bytes for a stream; the error wraps
	// driver.ErrOutOfMemory if there is none.
	take(size, stream uint64) (int32, error)
	// give takes a block back.
	give(i int32) error
	// trim gives memory back to the driver.
	trim() error
	// synchronize is told when all streams have done their work.
	synchronize() error
	// check returns the bytes that the heap has from the driver and those that it
	// has handed out.
	check() (reserved, given uint64, err error)
}
