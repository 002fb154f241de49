// Package recorded is a [driver.Driver] that answers from a recording: the
// trace of a real run, in order. What the engine cannot know by itself it asks
// its driver for (the address of a new segment, whether the device had memory
// left, whether the work of another stream had finished), and all of that can
// be read off the trace. With the same answers as the real device gave, an
// engine that follows PyTorch's rules must produce the same trace again.
//
// # The cursor
//
// The driver keeps a cursor into the recorded events. Whoever drives the
// engine calls [Driver.Advance] once for each event the engine emits, so that
// the event at the cursor is always the next one the real run produced:
//
//   - Malloc succeeds if that event is a segment_alloc, and gives its address;
//     otherwise the device of the recording must have refused.
//   - Map succeeds if it is the segment_map asked for.
//   - Reserve leaves no event. The address is that of the next segment_map of
//     the stream that lies in no live reservation: a new reservation is always
//     mapped from its start (spec 6.1).
//   - MemInfo gives the free memory noted in the next oom event.
//   - An event guarding a block is done if the block is in the run of
//     free_completed events at the cursor, or if a later event of its stream
//     is: streams complete in order.
//
// Where the recording says which operation caused an event, only the events of
// the operation named by [Driver.BeginOp] count.
//
// A Driver serves one run of one engine and is not safe for concurrent use;
// the engine calls it under its own lock.
package recorded
