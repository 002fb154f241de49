// Package verify runs a trace through the allocator engine and says whether the
// engine does what PyTorch did.
//
// [Run] makes the calls that the events show over package recorded, a driver
// that answers as the recorded device did. It compares every event and the final
// segments, and stops at the first difference, since later ones may follow from
// it.
//
// A snapshot does not say everything. The state at the first event comes from
// package start. Where a replay differs, Run tries other readings of the trace:
// a segment in another pool, frees that completed while an allocation waited,
// the limit under which garbage was collected, another size of the device. The
// number of events replayed for this is bounded.
//
// A trace that went through is [Verified]. The replay then adds what the trace
// lacks: the sizes of blocks, the range of the limit, and the calls as a
// [replay.Program], to be run under other conditions.
package verify
