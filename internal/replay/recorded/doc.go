// Package recorded is a [driver.Driver] that answers from a recording: the
// trace of a real run, in order. The engine asks its driver for what it cannot
// know: the address of a new segment, whether the device had memory left,
// whether another stream had finished its work. The trace has all of that. Given
// the answers of the real device, an engine that follows PyTorch's rules must
// produce the same trace again.
//
// # The cursor
//
// The driver keeps a cursor into the recorded events. The caller calls
// [Driver.Advance] once for each event that the engine emits, so that the event
// at the cursor is always the next one of the real run:
//
//   - Malloc succeeds if that event is a segment_alloc, and returns its address;
//     otherwise the recorded device must have refused.
//   - Map succeeds if it is the segment_map asked for.
//   - Reserve leaves no event. The address is that of the next segment_map of
//     the stream that lies in no live reservation: a new reservation is always
//     mapped from its start (spec 6.1).
//   - MemInfo returns the free memory of the next oom event.
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
