// Package monitor watches how much of an allocator's memory lies idle, tells
// the program when it is too much, and gives it back if asked to.
//
// # What is measured
//
// A caching allocator keeps what is freed. The memory it has reserved is active
// or cached, and of the cached memory a part is releasable, because whole
// segments or granules of it are free, and the rest is pinned: blocks in use lie
// beside it.
//
//	reserved = active + cached
//	cached   = releasable + pinned
//
// Three shares of the reserved memory come from that, one of which is watched.
// [Cached] is what other programs, or other allocators of this one, could have.
// [Pinned] is fragmentation proper: what nobody can have although nobody uses
// it, except for requests that happen to fit. [InactiveSplit] is the number that
// PyTorch calls so and that lessons compare with thresholds; blocks of
// expandable segments do not count in it. Memory that private pools keep cannot
// be given back while the pools live, and counts as pinned.
//
// None of the three is a fault by itself: a cache is there to be full between
// two steps. What threshold deserves an alarm depends on the program.
//
// # Alarm and release
//
// An alarm is raised by a sample above High and ends with one below Low, so that
// a share which wavers around one number does not raise one alarm after the
// other. With Release the monitor empties the cache during an alarm, if enough
// would come back, not more often than MinPause, and never while a graph is
// captured or a pool receives allocations. A release is not free: the driver
// waits for the device, requests of the program wait meanwhile, and what was
// given back is asked for again when the program needs it. It lowers the cached
// share; pinned memory it cannot touch. An alarm that a release ends within the
// check that raised it is reported as Raised, with the sample that raised it in
// Before.
package monitor
