// Package workload has small programs that use memory as services do, so that
// mallocs can be compared without a program of one's own.
//
// Those in Python are for how much memory is held; all their buffers are larger
// than 512 bytes, since smaller ones go to Python's own allocator and not to
// malloc. Those in C, compiled when they are needed, are for how fast malloc
// and free are.
//
// Every one prints "ready", begins at the end of its input, prints "done" and
// stays until it is ended. Some are measured the moment they are done, and so
// show what is held while they work; the others when they have been idle.
package workload
