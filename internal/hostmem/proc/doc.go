// Package proc reads what Linux tells about running processes: their memory,
// their mappings, their environment, their children.
//
// How much memory a process has is told in several ways, and they differ:
//
//   - RSS counts every page that is in memory, also those it shares with
//     others. Summed over a tree of processes, shared pages count many times.
//   - PSS gives each of n sharers the n-th part of a page. It adds up, but the
//     kernel walks all page tables to know it.
//   - LazyFree pages are given back by madvise(MADV_FREE). They count as
//     resident until the kernel needs them: an allocator that frees this way
//     looks larger than it is.
//
// A [Sampler] follows a tree of processes cheaply: one small file for each
// process and sample, and the dear figures as often as a fixed share of the
// time allows.
//
// Two errors may be acted on: [ErrNoProcess] and [ErrPermission]. A process may
// end at any moment, so every function here may return the first.
package proc
