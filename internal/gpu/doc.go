// Package gpu says what the GPUs of this machine are doing and what their
// memory costs.
//
// [Look] answers the first: every device with its memory, its processes and
// the price of a context, the memory that a process pays on a device before it
// has allocated anything. Nothing but making a context shows that price, so one
// is made, and only where it cannot hurt: see [When].
//
// [Run] answers the second by timing calls on one device. A caching allocator
// exists because of these figures: what the driver takes for a pair of malloc
// and free, what it takes to put memory behind a range of addresses, what the
// driver's own pool takes, and what the engine of package alloc takes over the
// same driver. Copies, and managed memory against copies, are the other half of
// the question where to keep data.
//
// # How it is timed
//
// A case is done in rounds until its share of the time is used up. A round of
// calls that take microseconds is one of each call; where a call takes
// nanoseconds a round is as many as fill some milliseconds. The first rounds
// only warm up. A [Row] has the median over the rounds and the quartiles around
// it, and says how many rounds there were. All of it is computed here and now:
// the package holds no figure of any device.
//
// No case takes more than half of the memory that is free when it begins; one
// that would is left out, with the reason ([Skipped]).
package gpu
