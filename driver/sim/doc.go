// Package sim is a GPU that exists only as numbers: a [driver.Driver] with an
// address space, a stock of physical memory and streams, and nothing behind
// them. What-if answers, plans and the tests of the engine run on it.
//
// A [Device] is deterministic: the same calls get the same addresses in every
// run. They are laid out as a real driver lays them out, because the engine
// prefers lower addresses among equal blocks (see address.go). Others in the
// process take addresses too; [Device.TakeExternal] makes room for them.
//
// It is strict. Everything a correct engine never does, such as freeing twice
// or mapping memory where some is mapped already, is an error that wraps
// [ErrMisuse].
//
// It fails on demand: the n-th call, the n-th call of a [Kind], every request
// above a size, or when physical memory is used up. A call that fails changes
// nothing but the count of calls.
//
// Work on streams takes no time: with [Immediate] events every event is done
// when it is recorded. With [Manual] events nothing is done before the test
// says so, or before a call waits for it: Free waits for the whole device,
// Unmap for its stream, WaitEvent for its event.
package sim
