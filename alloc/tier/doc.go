// Package tier changes what lies behind the addresses of an allocator: the device's
// memory or the host's. Idle memory makes room while its addresses stay valid, and
// a request that would fail becomes a slow one.
//
//	store, err := tier.New(device, tier.Options{})
//	actor := store.Space("actor")
//	engine := alloc.New(actor.Driver(), alloc.WithSettings(expandable))
//	err = actor.Attach(engine)
//	...
//	report, err := actor.Park(true) // the device's memory is free
//	report, err = actor.Restore()   // the same bytes at the same addresses
//
// The driver must be a [driver.HostMapper]; a device reads the host's memory over the
// bus, many times slower than its own. Only memory of expandable segments moves: the
// settings of the allocators need expandable_segments:True.
//
// # Spaces
//
// A [Space] is an unchanged [alloc.Allocator] over a driver of its own. Spaces share no
// handle, so parking one never touches a block of another.
//
// # Handles
//
// What moves is a whole handle, a granule of an expandable segment. Free rests of
// handles in the host's memory serve no ordinary request, reserved memory and limits
// count the device's pages only, and moves are in no trace. Blocks of private pools
// (captured graphs) and pinned ones do not move.
//
// # A move
//
// The target is mapped at a staging address first, so that a failure changes nothing; handles
// of the host stay mapped at one, because to map them takes longer than to copy them.
// Then nobody may use the device ([Options].Quiet), the bytes are copied, and the
// target takes the place of the old handle; if that fails the old one is mapped back.
// While one run of handles is remapped, the next is copied.
//
// # Overflow
//
// With [Space.SetOverflow] a request that would fail is served. At a mark
// ([Store.Step]), or if one thread alone uses the device ([Options].Alone), cold
// handles go to the host's memory first: those that were named by [Space.Cold], then
// those whose blocks live longest, or, once parameters were named by [Space.Busy], in a request those
// that were made early in the step. Otherwise, or if nothing is cold, the new block
// is put there. When memory becomes free, also in the allocator's cache, blocks come home at
// marks, hottest first, and cold ones before they are used if [Space.Fetch] is called for them. Those that were
// moved in a step and are not cold come home in it, once it is past its peak: steps are most often like those before.
package tier
