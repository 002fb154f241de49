// Package prognosis says how far a run would have got if the request that failed
// had been served.
//
// A recording ends at the failure. A [Prognosis] continues it: it finishes the
// step that failed as an earlier one went, then plays earlier steps again, in
// several orders. The result is a replay.Program, so whether a fix carries the run
// is decided by the allocator engine, not by a rule of thumb.
//
//	p := prognosis.New(program, steps, request)
//	c, err := p.Under(ctx, conditions) // under a setting, or a limit
//	c = p.Packed(limit)                // if blocks could be placed without waste
//	p = p.With(edit)                   // had the program allocated otherwise
//
// # Matching
//
// About half of all allocations have no call stack: those of the backward pass. So
// an allocation is named by its place in its step: the nth of its stack, or the
// so-manieth after the last one with a stack. The step that failed goes on as the
// earlier one that is most like it so far, from the counterpart of the request on.
//
// # Sizes
//
// Sizes that kept a ratio in all earlier steps keep it: what was twice another one
// is so now. Where that does not decide, what a step frees again grows with the
// step, and what outlives it, or has the size of something that does, does not.
// A step that is larger than its template is followed by another of its size.
//
// # What stays
//
// A block of a continued step is freed when its counterparts were: in its step, or
// so many steps later. What nobody freed in any step is a leak, and adds up.
//
// # Without an earlier step
//
// If the sizes asked at a line follow those of older blocks in their order, as an
// optimizer's state or a copy of the weights does, they go on to the end of these
// ([Series]). Otherwise nothing is known beyond the request, and [Unknown] is the
// answer, unless the request itself is too much.
//
// # How good it is
//
// TestDeaths puts limits on complete recordings and compares with what the
// complete recording does under them; see docs/measured/prognosis.md.
package prognosis
