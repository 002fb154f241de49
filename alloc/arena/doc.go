// Package arena hands out memory that is freed all at once: the scratch memory of
// a request, of a layer, of a training step.
//
//	ar, err := arena.New(a, arena.Options{Stream: stream})
//	for range steps {
//		x, err := ar.Alloc(n) // a few nanoseconds: an offset moves
//		s := ar.Scope()
//		y, err := ar.Alloc(m)
//		err = s.End()    // y is free, x is not
//		err = ar.Reset() // everything is free; the arena keeps its chunks
//	}
//	err = ar.Close() // the allocator has them back
//
// An arena takes chunks from any [Allocator], an [alloc.Allocator] or a tenant of
// alloc/tenant, and hands them out from the front to the back. What does not fit
// into the rest of a chunk goes to the next one. Requests above [Options].Large
// get a block of their own from the allocator, which goes back to it at the end
// of their scope.
//
// # Order on the device
//
// All memory of an arena belongs to one stream. Reset and End wait for nothing:
// what is allocated afterwards can lie where earlier memory lay, and work on the
// same stream comes after the earlier work by itself. Whoever uses the memory on
// another stream makes the arena's stream wait for that one before Reset or End.
//
// # Use
//
// An arena serves one goroutine at a time; its allocator may serve many. In
// steady state only [Arena.Trim] and [Arena.Close] call the driver, and nothing
// makes garbage.
package arena
