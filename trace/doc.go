// Package trace holds the memory history of one device and the state it ended in.
// Snapshots of PyTorch, plans, simulated workloads and live recordings all become
// a [Trace]; every answer is computed from one.
//
// # Shape
//
// Real traces have millions of events, so they are kept by column: one
// [Column] for each field, a few bytes an event, and nothing for a field that
// is the same everywhere. [Events.At] assembles one event without allocating. Each
// text is kept once in [Strings] and each call stack once in [Stacks], which share
// their frames. Several traces of one file may share both tables.
//
// # Absent values
//
// Files differ in what they contain. A missing value is never a zero by accident:
// [NoTime], [NoStack], [NoString] and [NoPool] mark it.
package trace
