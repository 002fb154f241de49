// Package timeline follows the memory of one device through its trace: how
// much was held, asked for and in use after every event, when it was highest,
// what the program was doing then, and what the memory looks like at the end.
//
// # Totals
//
// A trace tells the sizes that were requested, not those of the blocks. So a
// [Timeline] has the reserved memory and the requested sizes of all traces, and
// the sums of block sizes, which PyTorch calls allocated and active, only if it
// is given the sizes that an identical replay found ([Options].Sizes).
//
//	reserved   what segments hold
//	allocated  blocks handed out and not yet freed
//	active     allocated, and freed but still in use on another stream (pending)
//	requested  what the program asked for in active blocks
//
// # The beginning
//
// Recording often starts in the middle of a run. The totals then start from the
// state that package replay recovers by undoing the events from the final
// state, so they are right from the first event on. If a file ends within the
// events, the state it shows is not theirs; the beginning is then taken from the
// events alone. If they free what they did not allocate, the totals are lower
// bounds ([Timeline].AtLeast).
//
// # Any moment
//
// Who jumps to and fro, as a page does, needs no walk from the first event:
// [Lives] has when each block was there, [Course] the sums after any event, and
// [Layout] the segments then and where in them each block lay.
//
// # Speed
//
// A [Cursor] goes through the events and allocates nothing for one.
package timeline
