package driver

// Physical is a handle of physical memory, mapped nowhere at first.
type Physical uint64

// A PhysicalMapper is a Driver that makes physical memory and maps it in separate
// steps, so that memory can be kept while it is mapped nowhere.
type PhysicalMapper interface {
	Driver

	// CreatePhysical makes handles of size bytes each: all of them or none.
	CreatePhysical(size uint64, handles []Physical) error

	// MapPhysical maps handles of size bytes each side by side from addr on: all
	// of them or none. SetAccess opens the range.
	MapPhysical(addr, size uint64, handles []Physical) error

	// SetAccess opens a mapped range for reading and writing by its own device.
	SetAccess(addr, size uint64) error

	// UnmapPhysical takes the memory out of a range. It does not wait for work
	// that uses it.
	UnmapPhysical(addr, size uint64) error

	// ReleasePhysical gives handles back. The memory is free once it is also
	// unmapped.
	ReleasePhysical(handles []Physical) error

	// Synchronize waits until all work queued on stream is done.
	Synchronize(stream uint64) error
}
