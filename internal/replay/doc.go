// Package replay answers what would have happened: it runs the calls of a
// recorded or planned run again, through the allocator engine, under other
// settings, limits and devices.
//
// A [Program] is the calls: allocate, free, empty_cache, and the requests that
// failed. It has none of the answers that the allocator or the device gave.
// Package verify reads the Program of a trace, and checks that the engine makes
// the recorded events out of it again; [NewProgram] makes one of calls that
// nobody recorded.
//
// [Conditions] are what a Program is run under: the settings of the allocator,
// a limit on what it may reserve, the memory of the device. [Program.Run] makes
// the calls over driver/sim and returns the [Outcome]: whether a request failed,
// and where; the peaks of reserved, allocated, active and requested bytes; what
// was asked of the driver, and a curve of it all.
//
//	o, err := p.Run(ctx, replay.Conditions{Settings: s, Limit: 20 << 30})
//	if o.Fails { ... o.First.Event ... }
//
// [Program.Hold] stops just before a call. The [Moment] it returns shows the
// allocator's state there, and lets a caller try what would have helped: free a
// block, empty the cache, make the request again.
//
// Events and calls count from 0.
//
// The packages below this one:
//
//   - start finds the state of the allocator at the first event of a trace.
//   - verify replays a trace, compares every event, and finds what the trace does
//     not tell: pools, the limit, the sizes of blocks.
//   - recorded is the driver that answers from a recording.
//   - oracle replays recordings in which all answers of PyTorch are noted.
//   - generate writes long snapshots of made-up runs.
package replay
