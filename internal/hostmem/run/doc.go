// Package run runs a command under one malloc after the other and measures what
// it holds.
//
// A command that ends is measured to its end. A service goes through phases: it
// starts, becomes ready, runs under load and settles, idle; then it is stopped.
// Its final memory is the median over the time in which it settles; that of a
// command is the median over the end of its run. The part that was added since
// the service was ready is called retained.
//
// Three rules make the figures comparable:
//
//   - Runs are interleaved: all variants once, then all again. So changes on
//     the machine affect all of them alike.
//   - Every run is verified: the malloc that its largest process uses is looked
//     up in its memory. A preload without effect is an error, not a result.
//   - A difference counts when it is outside the spread of the repeats.
//
// A command runs in a process group of its own, and that group is signalled to
// stop it. Descendants that escaped from the group, as daemons do, are measured
// with the others; once the group is empty, each of them is signalled by itself.
// Nothing else is ever signalled: neither other children of this program nor a
// process that reuses the number of one that was seen.
//
// To know the descendants, this program adopts orphans while a command runs
// (PR_SET_CHILD_SUBREAPER) and marks the command before it runs any code. Where
// Linux does not allow that, only the group is signalled, and escaped processes
// are reported.
//
// A service whose first process exits with success and leaves a daemon behind has
// gone to the background: it is measured there and ends when the daemon ends.
//
// If this program is killed, a guard in each group kills the group.
package run
