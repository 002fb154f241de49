// Package stats collects what a file says about the memory of a device,
// without judging it: the numbers behind `ashlar stats`.
//
// A [Snapshot] is what a memory snapshot tells, a [Dump] what a memory_stats()
// dump tells, a [Message] what an out-of-memory message tells. They are plain
// data with the field names of the command's JSON, which docs/json.md
// documents. What a file does not tell is nil, never zero by accident, and
// Snapshot.Missing says in words what is not there and what that means for the
// other numbers.
package stats
