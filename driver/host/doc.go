// Package host is a device in host memory: a [driver.Copier] with real bytes.
// Programs written for a GPU run on it where there is none, and tests can check
// that the right bytes arrive at the right time.
//
// # Memory
//
// Segments are pages of the operating system, which backs them with memory as
// they are touched. A reserved range is addresses without access; Map grants
// access, and Unmap revokes it and returns the memory. The device has a capacity,
// counted in pages of 2 MiB as on a GPU, and refuses what exceeds it with
// [driver.ErrOutOfMemory].
//
// The device is a [driver.HostMapper] too: its handles, and those of the host, are
// parts of a file in memory that can be mapped at several addresses.
//
// # Streams
//
// A stream is a queue with its own goroutine, which does the work in order. Only
// events order the work of two streams, so a program that forgets one goes wrong
// here as it does on a GPU. [Device.Slow] slows a stream down and [Device.Launch]
// queues any function, such as one that waits for a test: with them a missing
// event shows every time, not once a month.
//
// # Errors
//
// A call that names memory, a stream or an event that does not exist returns an
// error that wraps [ErrMisuse]. Work whose memory was unmapped before its turn
// faults: Synchronize returns a [*FaultError], and the stream goes on. Go's race
// detector finds host memory that changes before its copy is done.
//
// A closed stream takes no more work, but an event can be recorded on it and
// memory cached for it can be unmapped.
//
// Close ends all goroutines.
package host
