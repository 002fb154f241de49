// Package explain gives the verdict on an out-of-memory error: why the request
// failed, who holds the memory, what would have helped, and how sure that is.
//
// # The verdict
//
// The run is replayed up to the failed request, and the request is tried again
// under changed circumstances. The first change that would have served it, in a
// fixed order, is the verdict:
//
//   - [Capacity]: live bytes and the request exceed what there is. Nothing but
//     more memory or less data helps.
//   - [Outside]: they would fit if the memory that PyTorch does not own were no
//     more than a CUDA context takes.
//   - [Pools]: the cache of the default pool was not flushed, because the request
//     was routed to a private pool; or free memory sits in private pools.
//   - [Pending]: memory that was freed but waits for another stream would have
//     served it.
//   - [Streams]: a free block of another stream would have served it, in a
//     segment that a flush cannot release.
//   - [Setting]: with one setting off the request is served.
//   - [Fragmentation]: there is enough, but not in one piece.
//   - [None]: nothing failed.
//
// The limit is in no snapshot. What was served and what was refused leaves a
// range; if the verdict depends on where in the range it lies, the report is
// open, names both verdicts and the limit that decides between them.
//
// # Fixes
//
// Every fix was tried: settings by replaying the whole recording under them,
// memory by bisecting the limit, code by freeing the tensors it names before the
// failed request. A recording that ends at its failure proves a fix only up to
// there.
package explain
