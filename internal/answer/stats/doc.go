// Package stats collects what a file says about the memory of a device,
// without judging it: the numbers behind `ashlar stats`.
//
// A [Snapshot] has what a memory snapshot says, a [Dump] what a memory_stats()
// dump says, a [Message] what an out-of-memory message says. They are plain data
// with the field names of the command's JSON, which docs/json.md documents. A
// number that is not in the file is nil, never zero, and Snapshot.Missing says
// what is missing and what that means for the other numbers.
package stats
