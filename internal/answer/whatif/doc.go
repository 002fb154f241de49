// Package whatif answers what other settings, limits and devices would have
// done to a recorded run: the answers behind `ashlar whatif`.
//
// # How
//
// The calls of a recording are a [replay.Program]. [Ask] runs it again under
// each of the given settings, beginning with the recorded ones, on all cores.
// A [Result] has the verdict, the peaks and what the driver was asked for. An
// [EmptyCache] makes the calls of empty_cache() at other moments.
//
// # How far to trust it
//
// The engine follows the rules of PyTorch's allocator, and [SelfCheck] says how
// many events of the recording it reproduces under the recorded settings. The
// calls are taken as recorded: nobody can know what the program would have done
// differently if a request had failed or been served. [Answer].Notes say what
// else an answer rests on.
//
// # Limits
//
// A prediction needs the limit and the device of the run. A recorder may have
// written them down; otherwise they are inferred from the requests that the file
// shows refused. A [Bound] says which value was used and where it comes from.
//
// # Failures that the program survives
//
// Some libraries catch an out-of-memory error and go on with less. [LooksCaught]
// reports, by its stack, whether a failed request may be one of theirs.
package whatif
