// Package monitor watches how much of an allocator's memory is idle, notifies the
// program when it is too much, and can release it.
//
// # What is measured
//
// A caching allocator keeps what is freed. Its reserved memory is either active
// or cached. Cached memory is releasable where whole segments or granules are
// free; the rest is pinned by blocks in use beside it.
//
//	reserved = active + cached
//	cached   = releasable + pinned
//
// A monitor watches one of three shares of the reserved memory. [Cached] is what
// other programs, or other allocators in this one, could use. [Pinned] is
// fragmentation proper: memory that nobody uses and that only requests which
// happen to fit can have. [InactiveSplit] is PyTorch's number of that name, which
// guides often compare with a threshold; it does not count blocks of expandable
// segments. Memory cached in private pools cannot be released while the pools
// live, and counts as pinned.
//
// A high share is no fault by itself: between two steps a cache should be full.
// Which threshold deserves an alarm depends on the program.
//
// # Alarm and release
//
// A sample above High raises an alarm and one below Low ends it, so a share that
// hovers around one number does not raise one alarm after another. With Release
// the monitor empties the cache during an alarm if that frees enough, at most once
// per MinPause, and never while a graph is captured or a pool receives
// allocations. A release has a cost: the driver waits for the device, requests of
// the program wait meanwhile, and the program must obtain the memory again when it
// needs it. A release lowers the cached share but cannot touch pinned memory. If a
// release ends an alarm within the check that raised it, the report says Raised
// and holds the sample that raised it in Before.
package monitor
