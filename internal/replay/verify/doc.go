// Package verify runs a trace through the allocator engine and says whether the
// engine does what PyTorch did.
//
// [Run] makes the calls that the events show over package recorded, a driver
// that answers as the recorded device did, and compares all that comes out:
// every event, and the segments at the end. The replay stops at the first
// difference: what follows one difference is its consequence.
//
// A snapshot does not tell everything. The state at the first event comes from
// package start. Where a replay goes wrong Run looks for another reading of the
// trace, within bounds that are counted in replayed events: segments of another
// pool, frees that completed while an allocation waited, the limit under which
// garbage was collected, another size of the device.
//
// A trace that went through is [Verified]. The engine then knows what the trace
// does not tell: the sizes of blocks, the range of the limit, and the calls as a
// [replay.Program], to be run under other conditions.
package verify
