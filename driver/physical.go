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

// A HostMapper is a PhysicalMapper that also makes physical memory in the host. Mapped
// into the device's addresses it is read and written over the bus, and what lies
// behind an address can change from one to the other.
type HostMapper interface {
	PhysicalMapper

	// CreateHostPhysical makes handles of size bytes each of the host's memory: all
	// of them or none. They are mapped and released as those of CreatePhysical are.
	// [ErrOutOfMemory] is returned if the host has not got it.
	CreateHostPhysical(size uint64, handles []Physical) error

	// CopyMapped copies between ranges that are mapped and opened, whatever memory is
	// behind them, and returns when the bytes are there. It waits for no other work.
	CopyMapped(dst, src, size uint64) error

	// SynchronizeDevice waits for all work of the device, on all streams. During any
	// capture of this process it returns [ErrCapturing].
	SynchronizeDevice() error
}
