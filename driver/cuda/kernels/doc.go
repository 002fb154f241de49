// Package kernels has the code that runs on the GPU itself: kernels that keep a
// stream busy, write a pattern to memory, check it, and read it all. Tests of the
// allocator and benchmarks use them.
//
// They are written in PTX, which the driver compiles for its card when a [Set]
// is loaded, so CUDA's toolkit is not needed. A word is 8 bytes. [Word] gives
// word i of the pattern of a seed, the same on the host and on the device: if each
// block is filled with its own seed, its content shows whose bytes it holds.
//
// All methods of a Set queue work on a stream and return, except
// [Set.Outcome].
package kernels
