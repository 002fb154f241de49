// Package policy has other allocators than PyTorch's, as they really are, to put
// the calls of a recorded run through: best fit, first fit, next fit, a buddy
// allocator, slabs, cub::CachingDeviceAllocator, TensorFlow's BFC, and the
// stream-ordered pool behind cudaMallocAsync. docs/policies.md has their rules
// and where they come from.
//
// Each strategy is a heap over a [driver.Driver]. [Allocator] is what all of them
// share: handles, streams, frees that wait for other streams, the limit, and the
// statistics.
//
//	s, err := policy.Parse("best-fit")
//	a := s.New(device, policy.Options{Limit: 20 << 30})
//	b, err := a.Malloc(size, policy.Place{Stream: 0})
//	err = a.Free(b)
//
// # Streams
//
// Most strategies know nothing of streams. They get a heap for each stream and
// private pool, so that no block is reused on another stream; [Strategy].Streams
// says which need none of that.
//
// # Speed
//
// Malloc and Free do not allocate: blocks are records in one slice that name each
// other by index, and free blocks are kept in order in small arrays.
//
// Package placement, below this one, plans with the future known; package managed
// models managed memory.
package policy
