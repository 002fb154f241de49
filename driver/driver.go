package driver

import "errors"

// ErrOutOfMemory is what Malloc, Reserve and Map return (possibly wrapped)
// when the device lacks the memory. The engine then releases cached memory and
// tries again. Any other error goes to the caller at once.
var ErrOutOfMemory = errors.New("out of memory")

// Event names a point in the work of one stream.
type Event uint64

// Driver is the device as the engine sees it. All sizes and addresses are in
// bytes. The engine calls a Driver under its own lock, except for Malloc when
// release_lock_on_cudamalloc is set: a driver used with that setting must be
// safe for concurrent use.
//
// A call that returns an error must have changed nothing.
type Driver interface {
	// TotalMemory is the size of the device. It scales the memory fraction and
	// the address range of an expandable segment, and never changes.
	TotalMemory() uint64

	// MemInfo reports free and total memory as the device sees them now.
	MemInfo() (free, total uint64, err error)

	// Malloc gets size bytes of device memory; stream is the stream the
	// engine will use them on first.
	Malloc(size, stream uint64) (addr uint64, err error)

	// Free gives back memory from Malloc. It waits for the device.
	Free(addr, size uint64) error

	// Reserve gets a range of addresses without memory behind it.
	Reserve(size, stream uint64) (addr uint64, err error)

	// Unreserve gives back a range from Reserve with nothing mapped in it.
	Unreserve(addr, size uint64) error

	// Map puts memory behind [addr, addr+size), in size/granule handles of one
	// granule each: all of them or none.
	Map(addr, size, granule uint64) error

	// Unmap takes the memory behind [addr, addr+size) away again, after
	// waiting for stream. The range covers whole granules mapped by one or
	// several calls of Map.
	Unmap(addr, size, granule, stream uint64) error

	// RecordEvent marks the work queued on stream up to now. The event guards
	// the block at addr: the engine will not reuse the block before the event
	// is done.
	RecordEvent(stream, addr uint64) (Event, error)

	// EventDone reports whether the work before the event has finished. Once
	// it has said true the engine does not name the event again, so the driver
	// may recycle it.
	EventDone(ev Event) (bool, error)

	// WaitEvent waits until the work before the event has finished. Once it
	// has returned nil the engine does not name the event again.
	WaitEvent(ev Event) error
}

// A Sequencer is a Driver that knows in which order blocks that become free
// together were returned. PyTorch walks hash tables there (spec 8.6), whose
// keys a recording does not show; a driver that replays a recording does.
type Sequencer interface {
	// Sequence reorders the addresses of the blocks about to be returned.
	Sequence(addrs []uint64)
}

// An Adopter is a Driver that can take over memory obtained before it existed: an
// allocator that starts from the state of another one frees that memory later.
type Adopter interface {
	// Adopt takes over the result of a Malloc.
	Adopt(addr, size uint64) error
	// AdoptRange takes over the result of a Reserve.
	AdoptRange(addr, size uint64) error
	// AdoptMapped takes over memory mapped into an adopted range.
	AdoptMapped(addr, size, granule uint64) error
}

// A Booker is a Driver over another one that counts what an engine takes of the
// device. It is told of memory behind the engine's addresses that leaves the device,
// or comes to it, without Unmap and Map.
type Booker interface {
	// Book adds to what the engine has taken, whatever the limits say.
	Book(bytes int64)
	// Claim does so before memory comes to the device, if the limits allow it: the
	// error wraps ErrOutOfMemory if they do not.
	Claim(bytes uint64) error
}

// A CaptureTracker is a Driver that can look into a graph being captured. It
// is asked only while graph_capture_record_stream_reuse is on (spec 5.6).
type CaptureTracker interface {
	// Mark notes the current end of each stream's captured work for a block
	// freed during the capture.
	Mark(addr uint64, streams []uint64)
	// Passed reports whether the captured work of stream already comes after
	// everything that Mark noted for the block.
	Passed(stream, addr uint64) bool
}

// Process is one process that holds memory on the device.
type Process struct {
	PID  int
	Used uint64
	Self bool
}

// A ProcessLister is a Driver that lists the processes that use the device, for the
// out-of-memory message.
type ProcessLister interface {
	Processes() ([]Process, error)
}
