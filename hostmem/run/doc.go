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
// A command runs in a process group of its own. Signals go to that group and to
// nothing else; a run is over when the group is empty.
package run
