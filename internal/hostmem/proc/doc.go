// Package proc reads what Linux reports about running processes: their memory,
// their mappings, their environment, their children.
//
// Linux counts the memory of a process in several ways:
//
//   - RSS counts every resident page, including those shared with other
//     processes. Summed over a process tree, it counts shared pages many times.
//   - PSS divides a shared page among its sharers. It adds up, but the kernel
//     walks all page tables to compute it.
//   - LazyFree pages are given back by madvise(MADV_FREE). They count as
//     resident until the kernel needs them: an allocator that frees this way
//     looks larger than it is.
//
// A [Sampler] follows a process tree cheaply: it reads one small file for each
// process and sample, and the expensive figures only as often as a fixed share
// of the time allows.
//
// Callers may act on two errors: [ErrNoProcess] and [ErrPermission]. A process
// may end at any moment, so every function may return the first.
package proc
