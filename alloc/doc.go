// Package alloc is the allocator engine: over any [driver.Driver] it behaves as
// PyTorch 2.11's caching CUDA allocator does, rule for rule, as
// [docs/spec/pytorch-2.11-allocator.md] specifies.
//
// # Vocabulary
//
// A segment is memory got from the driver. It is tiled by blocks, which are
// split off, handed out, freed and merged again. Free blocks wait in the pool
// they came from: small for requests up to 1 MiB, large above. Pools keep the
// streams apart, because a free block may be reused without waiting only on
// the stream that used it last. Reserved is what segments hold, allocated what
// was handed out, active also what was freed but is still in use on another
// stream. Private pools, for CUDA graphs and MemPools, have segments of their
// own; while a route is active allocations go to one of them.
//
// # The life of a request
//
// Malloc rounds the size (rules.go), looks for the smallest cached block that
// fits, the lowest address among equals (malloc.go, freeset.go), and splits off
// what is left (split.go). If nothing fits it collects garbage (collect.go),
// asks the driver for a segment or maps more of an expandable one
// (expandable.go), and when the driver or the limit refuses it releases
// cached memory (release.go) and tries again. What remains is an
// [*OutOfMemoryError] (oom.go). Free merges the block with its free neighbours
// (free.go), or, if other streams use it, waits for them (streams.go).
// Events tell what happened (event.go), decisions why (decision.go).
//
// # When memory runs out
//
// Three functions of the program can be called on the way, none of them under
// the allocator's lock. [WithReclaimer] comes first, whenever no cached block
// fits: it gives back what the program itself keeps for later. (A cache of freed
// blocks in front of the allocator is a [Borrower], and is asked under the lock.)
// [WithOOMRetry] comes when the release of cached memory did not help and the
// request is about to fail: it may drop what is dear, and have the request tried
// again. [WithOOMObserver] comes last and is only told: the request has failed.
// The [*OutOfMemoryError] that the latter two see holds the numbers at that
// moment. Its text is PyTorch's sentence, word for word. Why the request failed,
// and where the free memory is that could not serve it, says
// [Allocator.Diagnose] in a sentence, and [Allocator.Shortage] in numbers:
//
//	var oom *alloc.OutOfMemoryError
//	if errors.As(err, &oom) {
//		log.Print(oom.Numbers(), " ", a.Diagnose(oom))
//	}
//
// # Truth
//
// The rules are judged by recordings of the real allocator: every event,
// statistic, segment and block must come out the same. Comments cite the rule
// they follow by its section in the specification ("spec 7.3"). Where PyTorch
// itself is undefined the engine stays sound and says so
// ([Allocator.Undefined]).
//
// # Invariants
//
//	the blocks of a segment tile it, in address order
//	neighbours are never both free, nor both unmapped
//	a free set holds exactly the free blocks of its pool and stream
//	current = sum over the blocks, for every statistic that has a current
//	reserved total = sum of segment sizes = reserved_bytes.all.current
//
// [Allocator.CheckInvariants] verifies them; builds with the tag invariants do
// so after every operation.
//
// # Use
//
// An Allocator serves one device and is safe for concurrent use; one mutex
// guards it. In steady state Malloc and Free allocate nothing on Go's heap.
//
// [docs/spec/pytorch-2.11-allocator.md]: https://github.com/ashlar-mem/ashlar/blob/main/docs/spec/pytorch-2.11-allocator.md
package alloc
