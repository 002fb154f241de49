// Package trace is the common currency: the memory history of one device, with
// the state it ended in. Snapshots of PyTorch, plans, simulated workloads and
// live recordings all become a [Trace]; every answer is computed from one.
//
// # Shape
//
// Real traces have millions of events, so they are kept by column: one
// [Column] for each field, a few bytes an event, and nothing for a field that
// is the same everywhere. [Events.At] puts one event together without
// allocating. Texts are kept once in [Strings]; call stacks once in [Stacks],
// which share their frames. Both tables may serve several traces of one file.
//
// # Absent values
//
// Files differ in what they tell. What a file does not tell is absent here and
// never zero by accident: [NoTime], [NoStack], [NoString] and [NoPool] say so.
package trace
