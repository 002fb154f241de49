package tier

import "time"

// Stats are numbers of a space or of all.
type Stats struct {
	Device  uint64 // bytes of device memory
	Host    uint64 // bytes of host memory behind addresses
	Spilt   uint64 // of these, bytes that overflowed, and were not parked by a call
	Kept    uint64 // bytes of host memory kept for the next move; of a space 0
	Dropped uint64 // bytes of addresses whose memory was dropped
	Broken  uint64 // bytes that the driver failed to map back; each later call tries again

	Overflows uint64 // requests that the host's memory served

	Moves    uint64        // handles that were moved, either way
	BytesOut uint64        // bytes that were moved to the host
	BytesIn  uint64        // bytes that were moved to the device
	Time     time.Duration // spent in moves
}

// Report says what a call has moved.
type Report struct {
	Out     uint64 // bytes moved to the host
	In      uint64 // bytes brought to the device; of dropped memory too
	Dropped uint64 // bytes dropped
	Freed   uint64 // bytes of device memory given back, cached ones included

	// Why live memory stayed on the device that the call might have moved.
	Shared  uint64 // handles with blocks that were not named
	Pinned  uint64
	Private uint64 // pools of captured graphs
	Plain   uint64 // segments that are not expandable

	Time time.Duration // with the wait for the device
}
