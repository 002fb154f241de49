// Package generate makes large snapshots out of recorded ones: for tests of
// speed and memory, for demonstrations, and for trying a reader on sizes that
// nobody wants to keep in a repository.
//
// # How
//
// The trace of a recording is read as a program: allocate, free, empty the
// cache. The program is run through the allocator engine on a simulated
// device, again and again, and the events that the engine emits are the events
// of the new snapshot. The final segments are the engine's. So whatever the
// length, the result is what the allocator would have done, and a replay of it
// is identical to it.
//
// # What repeats
//
// The first pass is the whole program. What it leaves allocated at its end
// (weights, optimizer state) stays, and the later passes repeat the rest:
// everything that is allocated and freed again. What was live before a
// recording began is allocated at the start. Times go on from pass to pass
// with the recorded distances and a short pause between passes.
//
// # What does not
//
// The device has memory enough: requests that failed are left out, and memory
// is not released to make room. Private pools are not told apart, everything
// comes from the default pool. Addresses are those of the simulated device.
// Fields that this program does not know are dropped.
//
// # Size
//
// A snapshot lists its final segments before its events. The program is
// therefore run twice: once to see where it ends and once to write. Nothing
// but the program and the allocator's state is held in memory.
package generate
