// Package watch stores what running PyTorch jobs say of their GPU memory, raises
// alarms, and asks the jobs to act on them. docs/watch.md describes the messages.
//
// A job is a session. What it sends is appended to the journal of its session in
// [hub], and acknowledged then. A full journal becomes a block by column; blocks
// become blocks of fewer rows when they age.
package watch
