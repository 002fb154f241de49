// Package explain gives the verdict on an out-of-memory error: why the request
// failed, who holds the memory, what would have helped, and how sure that is.
//
// # The verdict
//
// The run is replayed up to the failed request, and the request is repeated
// under changed circumstances. The first change that serves it, in a fixed order,
// is the verdict:
//
//   - [Capacity]: allocated bytes and the request exceed the available memory.
//     Only more memory or less data helps.
//   - [External]: they would fit if the memory that PyTorch does not own were no
//     more than a CUDA context takes.
//   - [Pools]: the cache of the default pool was not flushed, because the request
//     was routed to a private pool; or free memory sits in private pools.
//   - [Pending]: freed memory that waits for another stream would have served
//     it.
//   - [Streams]: a free block of another stream would have served it, in a
//     segment that a flush cannot release.
//   - [Setting]: with one setting off the request is served.
//   - [Fragmentation]: enough memory is free, but not in one piece.
//   - [NearlyFull]: of a text alone, the request fits and next to nothing would
//     be left.
//   - [None]: nothing failed.
//
// The limit is in no snapshot. The requests that were served and refused leave a
// range. If the verdict depends on where in the range the limit lies, the report
// is open: it names both verdicts and the limit that decides between them.
//
// # Fixes
//
// Every fix was tried: settings by a replay of the whole recording, memory by
// bisecting the limit, code by freeing the tensors it names before the failed
// request. A recording that ends at its failure proves a fix only up to there.
//
// # Many files
//
// A [RankSet] joins the explanations of several files into one verdict.
package explain
