// Package start finds the state of the allocator at the first event of a trace.
//
// A snapshot has the state at its end and the events before it. Where the
// history began before the first allocation the state at its first event is
// empty; otherwise [Find] undoes the events one by one, from the last to the
// first. What is left is the [State] that a replay begins with.
package start
