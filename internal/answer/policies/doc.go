// Package policies answers what other allocators would have done with a recorded
// run: the answers behind `ashlar policies`.
//
// # How
//
// The calls of a recording are a [replay.Program]. Each online strategy of package
// policy makes them over a simulated device; PyTorch's own allocator makes them
// through [replay.Program.Run]. Oracles know the future: a static plan, an arena that
// is emptied at each step, and the lower bound. Managed memory is a model of its own.
//
// A placement problem is a list of buffers with lifetimes; it has no trace, and its
// sizes are taken as they are.
//
// # What the figures mean
//
// Live is what was asked for, rounded to 512 B, from the allocation until the free is
// complete. Reserved is what an allocator has from the driver. Waste is at the peak of
// reserved memory: internal is what was given beyond what was asked for, external what
// was reserved and not given.
package policies
