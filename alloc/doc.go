// Package alloc is the allocator engine. On top of any [driver.Driver] it follows
// PyTorch 2.11's caching CUDA allocator rule for rule, as specified in
// [docs/spec/pytorch-2.11-allocator.md]; with [WithVersion] that of another
// release.
//
// # Vocabulary
//
// A segment is memory obtained from the driver. Blocks tile it: they are split,
// handed out, freed and merged. Free blocks wait in the pool they came from:
// small for requests up to 1 MiB, large above. Pools keep streams apart, because
// a free block can be reused without waiting only on the stream that used it
// last. Reserved bytes are what segments hold. Allocated bytes were handed out.
// Active bytes are those plus what was freed but is still in use on another
// stream. Private pools, for CUDA graphs and MemPools, have segments of their
// own; while a route is active, allocations go to one of them.
//
// # The life of a request
//
// Malloc rounds the size (rules.go), takes the smallest cached block that fits,
// the lowest address among equals (malloc.go, freeset.go), and splits off the
// rest (split.go). If no block fits, it collects garbage (collect.go), then asks
// the driver for a segment or maps more of an expandable one (expandable.go). If
// the driver or the limit refuses, it releases cached memory (release.go) and
// tries again. If that fails too, it returns an [*OutOfMemoryError] (oom.go).
// Free merges the block with its free neighbours (free.go), once all streams that
// use it have passed (streams.go). Events record what happened (event.go),
// decisions why (decision.go).
//
// # When memory runs out
//
// The allocator can call three functions of the program, none of them under its
// lock. That of [WithReclaimer] runs whenever no cached block fits: it frees what
// the program itself keeps for later. (A cache of freed blocks in front of the
// allocator is a [Borrower], and is asked under the lock.) That of [WithOOMRetry]
// runs when releasing cached memory did not help: it may free expensive state and
// ask for a retry. That of [WithOOMObserver] runs last, after the request has
// failed. The latter two get an [*OutOfMemoryError] with the numbers of that
// moment; its text is PyTorch's message, word for word. [Allocator.Diagnose] says
// why the request failed and where the unusable free memory is;
// [Allocator.Shortage] gives the same in numbers:
//
//	var oom *alloc.OutOfMemoryError
//	if errors.As(err, &oom) {
//		log.Print(oom.Numbers(), " ", a.Diagnose(oom))
//	}
//
// # Fidelity
//
// Tests compare the engine with recordings of the real allocator: every event,
// statistic, segment and block must be the same. Comments cite the rule they
// follow by its section in the specification ("spec 7.3"). Where PyTorch's own
// behaviour is undefined, the engine stays sound and [Allocator.Undefined]
// reports it.
//
// # Invariants
//
//	the blocks of a segment tile it, in address order
//	neighbours are never both free, nor both unmapped
//	a free set holds exactly the free blocks of its pool and stream
//	current = sum over the blocks, for every statistic that has a current
//	reserved total = sum of segment sizes = reserved_bytes.all.current
//
// [Allocator.CheckInvariants] verifies them. Builds with the tag invariants verify
// them after every operation.
//
// # Use
//
// An Allocator serves one device and is safe for concurrent use; one mutex
// guards it. In steady state Malloc and Free allocate nothing on Go's heap.
//
// [docs/spec/pytorch-2.11-allocator.md]: https://github.com/ashlar-mem/ashlar/blob/main/docs/spec/pytorch-2.11-allocator.md
package alloc
