// Package sim is a GPU that exists only as numbers: a [driver.Driver] with an
// address space, a stock of physical memory and streams, and nothing behind
// them. What-if answers, plans and the tests of the engine run on it.
//
// A [Device] is deterministic: the same calls get the same addresses in every
// run. Addresses are laid out as a real driver lays them out, because the engine
// prefers lower addresses among equal blocks (see address.go). Other parts of a
// process take addresses too; [Device.TakeExternal] models them.
//
// It is strict. Whatever a correct engine never does, such as freeing twice or
// mapping a range that is already mapped, is an error that wraps [ErrMisuse].
//
// It fails on demand: at the n-th call, at the n-th call of a [Kind], at every
// request above a size, or when physical memory is used up. A call that fails
// changes nothing but the count of calls.
//
// Work on streams takes no time: with [Immediate] events every event is done
// when it is recorded. With [Manual] events an event is done when the test says
// so or a call waits for it: Free waits for the whole device, Unmap for its
// stream, WaitEvent for its event.
package sim
