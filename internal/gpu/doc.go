// Package gpu reports what the GPUs of this machine are doing and how long
// operations on their memory take.
//
// [Inspect] reports every device with its memory, its processes and the size of
// a context: the memory that a process holds on a device before it allocates
// anything. Only creating a context shows that size, so Inspect creates one
// where it cannot hurt: see [When].
//
// [Run] times calls on one device. These figures are why a caching allocator
// exists: the time of a cudaMalloc and cudaFree, of mapping memory into a range
// of addresses, of the driver's own pool, and of the engine of package alloc on
// the same driver. Copies, and managed memory compared with copies, show where
// to keep data.
//
// # How it is timed
//
// A case runs in rounds until its share of the time is used up. Where calls take
// microseconds, a round makes each call once; where they take nanoseconds, it
// makes enough of them to fill some milliseconds. The first rounds only warm up.
// A [Row] has the median over the rounds, the quartiles around it and the number
// of rounds. Everything is measured on the spot: the package contains no figures
// of any device.
//
// No case takes more than half of the memory that is free when it starts; one
// that would is left out, with the reason ([Skipped]).
package gpu
