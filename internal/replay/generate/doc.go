// Package generate makes large snapshots from recorded ones: for tests of speed
// and memory, for demonstrations, and to try a reader on sizes too large for a
// repository.
//
// # How
//
// The trace of a recording is read as a program: allocate, free, empty the
// cache, delete a pool. The program runs through the allocator engine on a
// simulated device, again and again. The engine's events are the events of the
// new snapshot, and its segments are the final segments. So at any length the
// result is what the allocator would have done, and it replays identically.
//
// # What repeats
//
// The first pass is the whole program. What it leaves allocated (weights,
// optimizer state) stays. Later passes repeat the rest: everything that is
// allocated and freed again. What was allocated before the recording began is
// allocated at the start. Times continue from pass to pass with the recorded
// intervals and a short pause between passes. Private pools are kept; one that
// the recording deletes gets a new id in the next pass.
//
// # What does not
//
// The device never runs out of memory: requests that failed are left out, and
// no request makes the allocator release memory. Addresses are those of the
// simulated device.
// Fields that this program does not know are dropped.
//
// # A failure at the end
//
// Under a limit on reserved memory the calls are made until a request fails. The
// result ends there, like a snapshot that is taken when PyTorch runs out of
// memory: the oom event is the last one, after the releases that did not help,
// and the segments are those of that moment. As in PyTorch, the limit is not in
// the file.
//
// # Size
//
// A snapshot lists its final segments before its events. The program is
// therefore run twice: once to find its end and once to write. With a limit it
// runs three times, first without the limit to count the calls. Only the program
// and the allocator's state are held in memory.
package generate
