// Package start finds the state of the allocator at the first event of a trace.
//
// A snapshot has the final segments and the events before them. If recording
// began before the first allocation, the state at the first event is empty.
// Otherwise [Find] undoes the events one by one, from the last to the first.
// What is left is the [State] that a replay begins with.
package start
