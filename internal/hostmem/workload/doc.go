// Package workload has small programs that use memory as services do, so that
// users can compare mallocs without a program of their own.
//
// The Python programs show how much memory is held; all their buffers are larger
// than 512 bytes, since smaller ones go to Python's own allocator and not to
// malloc. The C programs, compiled on demand, show how fast malloc and free are.
//
// Every program prints "ready", starts work when its input is closed, prints
// "done" and stays until it is stopped. Some are measured as soon as they are
// done, to show what is held during work; the others after being idle.
package workload
