// Package explain says why a job ran out of memory: the cause, what to try first,
// who holds the memory, what else would help, and how sure that is.
//
// # The trigger
//
// Why the request failed just then. The run is replayed up to the failed request,
// and the request is repeated under changed circumstances. The first change that
// serves it, in a fixed order, is the trigger:
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
// range. If the trigger depends on where in the range the limit lies, the report
// is open: it names both triggers and the limit that decides between them.
//
// # The cause
//
// Why the job does not run. Package prognosis continues the recording beyond its
// failure. In this order: a [Leak] kills the job; others hold the memory
// ([SharedDevice]); the request alone is too much and nothing before explains it
// ([AbsurdRequest]); the step needs more than there is, however blocks are placed
// ([Spike] if ordinary steps fit, else [Capacity]); else it is that of the trigger,
// [Fragmentation] or [Stranded].
//
// # Fixes
//
// Every fix is replayed on the continued run and says how far it carries it: code
// with the calls that it changes, memory by bisecting the limit. What carries
// further comes first, among equals a line to export; more memory comes last.
//
// # Many files
//
// A [RankSet] joins the explanations of several files into one verdict.
package explain
