// Package host is a device in the memory of this machine: a [driver.Copier]
// whose bytes are real. Programs written for a GPU run on it where there is
// none, and tests see whether the right bytes arrive at the right time.
//
// # Memory
//
// Segments are pages of the operating system, which takes memory for them as
// they are touched. A reserved range is addresses without access; Map gives
// access and Unmap takes it, and the memory, away. The device has a capacity, in
// pages of 2 MiB as a GPU has, and refuses what is beyond it with
// [driver.ErrOutOfMemory].
//
// # Streams
//
// A stream is a queue with a goroutine of its own that works it off in order.
// Nothing but events orders the work of two streams, so a program that forgets
// one goes wrong here as it does on a GPU. [Device.Slow] makes a stream slow and
// [Device.Launch] queues any function, such as one that waits for a test: with
// them a missing event shows every time and not once a month.
//
// # What goes wrong
//
// A call that names memory, a stream or an event that does not exist is an error
// that wraps [ErrMisuse]. Work that was queued in good order and finds its
// memory unmapped when its turn comes faults; the fault is a [*FaultError] that
// Synchronize reports, and the stream goes on. Go's race detector sees host
// memory that is changed before a copy of it was done.
//
// A closed stream is one whose work is done: work for it is misuse, but an event
// can be recorded on it and memory cached for it can be unmapped.
//
// Close ends all goroutines.
package host
