// Package replay answers what would have happened: it runs the calls of a
// recorded or planned run through the allocator engine again, under other
// settings, limits and devices.
//
// A [Program] is a list of calls: allocate, free, empty_cache, and the requests
// that failed. It has none of the answers that the allocator or the device gave.
// Package verify reads the Program of a trace and checks that the engine
// reproduces the recorded events; [NewProgram] makes a Program from calls that
// were not recorded.
//
// [Conditions] are what a Program runs under: the allocator's settings, a limit
// on reserved memory, the memory of the device. [Program.Run] makes the calls
// over driver/sim and returns the [Outcome]: whether and where a request failed,
// the peaks of reserved, allocated, active and requested bytes, the work of the
// driver, and a curve.
//
//	o, err := p.Run(ctx, replay.Conditions{Settings: s, Limit: 20 << 30})
//	if o.Fails { ... o.First.Event ... }
//
// [Program.Hold] pauses just before a call. The [Paused] run it returns shows
// the allocator's state and lets a caller try what would have helped: free a
// block, empty the cache, repeat the request.
//
// Events and calls count from 0.
//
// The packages below this one:
//
//   - start finds the state of the allocator at the first event of a trace.
//   - verify replays a trace, compares every event, and infers what the trace
//     lacks: pools, the limit, the sizes of blocks.
//   - recorded is the driver that answers from a recording.
//   - oracle replays recordings that have every answer of PyTorch.
//   - generate writes long snapshots of made-up runs.
//   - vary makes programs that differ a little from a recorded one.
package replay
