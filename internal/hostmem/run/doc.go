// Package run runs a command under one malloc after the other and measures what
// it holds.
//
// A command that ends is measured to its end. A service goes through phases: it
// starts, it is ready, it is driven by a load, and it settles, idle; then it is
// ended. What it holds in the end is its final memory: the median over the time
// in which it settles, or over the end of a command that ends by itself. What of
// that came since it was ready is retained.
//
// Three rules make the figures comparable:
//
//   - Runs are interleaved: all variants once, then all again. What changes on
//     the machine meanwhile meets all of them.
//   - Every run is verified: the malloc that its largest process uses is looked
//     up in its memory. A preload without effect is an error, not a result.
//   - A difference counts when it is outside the spread of the repeats.
//
// A command runs in a process group of its own, and that group is signalled when
// it is to end. Some of its descendants may have left the group, as daemons do:
// they are measured with the others, and when the group is empty each of them is
// signalled by itself. Nothing else ever is: not what this program has started
// besides, and not a process that only has the number of one that was seen.
//
// To know its descendants, this program has their orphans come to it while a
// command runs, as Linux allows (PR_SET_CHILD_SUBREAPER), and marks the command
// before it does anything. Where that cannot be had, only the group is signalled;
// who has left it is told.
//
// A service whose first process ends with success, and leaves a daemon behind, has
// gone to the background: it is measured there, and over when the daemon ends.
//
// If this program is killed, a guard in each group kills the group.
package run
