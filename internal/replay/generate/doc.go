// Package generate makes large snapshots out of recorded ones: for tests of
// speed and memory, for demonstrations, and for trying a reader on sizes that
// nobody wants to keep in a repository.
//
// # How
//
// The trace of a recording is read as a program: allocate, free, empty the
// cache, delete a pool. The program is run through the allocator engine on a simulated
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
// with the recorded distances and a short pause between passes. Private pools
// are kept; one that the recording deletes is another in the next pass.
//
// # What does not
//
// The device has memory enough: requests that failed are left out, and memory
// is not released to make room. Addresses are those of the simulated device.
// Fields that this program does not know are dropped.
//
// # A failure at the end
//
// Under a limit on reserved memory the same calls are made until a request
// fails. The result ends there, as a snapshot does that is taken when PyTorch
// runs out of memory: its oom event is the last, after what was released in
// vain, and the segments are those of that moment. As in PyTorch the file does
// not tell the limit.
//
// # Size
//
// A snapshot lists its final segments before its events. The program is
// therefore run twice: once to see where it ends and once to write. A limit
// makes it three times, the first without it to see how many calls there are.
// Nothing but the program and the allocator's state is held in memory.
package generate
