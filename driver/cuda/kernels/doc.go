// Package kernels is the little code that runs on the GPU itself: kernels that
// keep a stream busy, write a pattern over memory, check it and read it all.
// Checks of the allocator and benchmarks use them.
//
// They are written in PTX, which the driver compiles for its card when a [Set]
// is loaded, so nothing of CUDA's toolkit is needed. A word is 8 bytes. Word i
// of the pattern of a seed is [Word], the same on the host and on the device:
// a block filled with a seed of its own tells whoever reads it whose bytes it
// holds.
//
// All methods of a Set queue work on a stream and return, except
// [Set.Outcome].
package kernels
