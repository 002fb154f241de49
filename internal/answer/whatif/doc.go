// Package whatif answers what other settings, limits and devices would have
// done to a recorded run: the answers behind `ashlar whatif`.
//
// # How
//
// The calls of a recording are a [replay.Program]. [Ask] runs it again under
// each of the given settings, beginning with the recorded ones, on all cores.
// A [Result] has the verdict, the peaks and what the driver was asked for.
//
// # How far to trust it
//
// The engine follows the rules of PyTorch's allocator, and [SelfCheck] says how
// many events of the recording it reproduces under the recorded settings. The
// calls are taken as they were recorded: what a program would have done
// otherwise because a request failed, or because memory was to be had, nobody
// can know. [Answer].Notes say what else an answer rests on.
//
// # Limits
//
// A prediction needs the conditions of the run. A recorder may have written
// them down; else they follow from the file as far as requests were refused in
// it. A [Bound] says what was taken and where it comes from.
//
// # Failures that are no end
//
// Some libraries catch an out-of-memory error and go on with less. [LooksCaught]
// tells by its stack whether a failing request may be one of theirs.
package whatif
