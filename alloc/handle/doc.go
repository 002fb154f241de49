// Package handle counts who uses a piece of memory and frees it when nobody does:
// a cache entry that requests share, weights that two models use, a buffer that
// travels through a pipeline.
//
//	t := handle.New(a, handle.Options{})
//	b, err := t.Malloc(1<<20, stream) // one holder
//	c, err := b.Retain()              // two
//	err = b.Release()                 // one
//	err = c.Release()                 // none: the memory is free
//
// A [Buffer] is a value; each one that Malloc or Retain returned is released
// once. It names its memory together with a generation, so a Retain or Release
// after its memory was freed is an [ErrReleased] and never reaches the memory's
// next owner. A [Weak] keeps nothing alive; [Weak.Retain] gives a buffer as long
// as somebody holds one.
//
// # Finding leaks
//
// [Table.Leaks] lists what is not released. With [Options].Debug each entry names
// every holder and the stack of the Malloc or Retain that made it one, and a
// second Release of the same holder is an [ErrReleased] even while others hold
// the memory. That costs microseconds and garbage per call: it is for tests and
// for the hunt.
//
// # Use
//
// All methods are safe for concurrent use. Without Debug, Retain and Release take
// a few nanoseconds and make no garbage; the last Release costs what the
// allocator's Free costs, Malloc what its Malloc does.
package handle
