// Package timeline follows the memory of one device through its trace: how much
// was reserved, requested and active after every event, when it peaked, what the
// program was doing then, and what the memory looks like at the end.
//
// # Totals
//
// A trace has requested sizes, not block sizes. A [Timeline] therefore always
// has reserved and requested bytes. It has allocated and active bytes, which are
// sums of block sizes, only if it is given the sizes that an identical replay
// found ([Options].Sizes).
//
//	reserved   bytes of all segments
//	allocated  bytes of blocks handed out and not yet freed
//	active     allocated, plus freed but still in use on another stream (pending)
//	requested  bytes the program asked for in active blocks
//
// # The start state
//
// Recording often starts in the middle of a run. Package start then recovers the
// state before the first event by undoing the events from the final segments, so
// the totals are right from the first event on. A file that is cut off within
// its events has no final segments to match; the start state then comes from the
// events alone. If those free blocks that they did not allocate, the totals are
// lower bounds ([Timeline].AtLeast).
//
// # Random access
//
// Random access does not walk from the first event. [Lifetimes] says when each
// block existed, [TotalsIndex] has the totals after any event, and [Layout] has
// the segments at any event and where each block lay in them.
//
// # Speed
//
// A [Cursor] walks the events without allocating memory.
package timeline
