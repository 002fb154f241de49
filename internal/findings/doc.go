// Package findings says what memory does over the steps of a program, and what
// it is for: leaks, spikes, what makes up a step's peak, and who holds the
// memory at any moment.
//
// Everything is computed from one trace. Sizes are block sizes if the trace
// replays identically, requested sizes otherwise.
//
//	a := findings.New(lifetimes, annotations)
//	found := a.Find()                   // leaks, spikes, the transient of a step
//	holders := a.Holders(a.PeakEvent()) // by stack, line, module, category
//
// # Steps
//
// [Analysis].Steps says how steps were found and with what confidence. The first
// of these signs that a file has is used:
//
//   - ranges ProfilerStep#n of torch.profiler;
//   - texts of user_metadata that differ in a number which rises, "step 7";
//   - ranges Optimizer.step of torch.optim, which PyTorch makes by itself. A
//     step begins with the first allocation after the optimizer whose stack
//     occurs in every step. What some steps do in between, such as saving a
//     checkpoint, belongs to the step before. Several optimizers of one class
//     that take turns make one step;
//   - the period of the allocations: stacks repeat, whatever the sizes. Stacks
//     that occur equally often and in turn are a loop. A loop inside a call of an
//     nn.Module goes over layers, and one that only allocates builds a list.
//     If the program trains, a step is the innermost loop whose rounds end with
//     an update. Otherwise it is the outermost loop that begins with a stack of
//     its own: a request rather than a token.
//
// Set-up comes before the first step. The last step may be incomplete. What
// follows it, other work or the end of the program, belongs to no step.
//
// # Leaks
//
// A [Leak] is memory that step after step allocates and that is still allocated
// when the last complete step ends. If a request fails later, or the trace breaks
// off within a step, it must still be allocated then. The first step may keep
// state and caches, and the last may not have dropped everything yet, so neither
// is evidence. It is no leak if the growth stops (a full cache) or slows down (a
// cache that fills), if as much new memory replaces old (a buffer, a window over
// the last steps), or if it was dropped before (the results of an epoch). A buffer
// that a larger one replaces in every step is a leak: it grows without end. Memory
// that is freed after the last step, as when the program ends, still counts as
// leaked.
// Stacks from one line of the program count together. And whatever the numbers
// say: see [WhereNotWho].
//
// # Spikes
//
// A [Spike] is memory from stacks that at most half of the steps have: saving,
// evaluating. Varying sizes are no spike. Nor is memory that only the first steps
// take, that begins at some point and stays, or that replaces what other steps
// take instead. A spike is measured from the lowest level of its step, so it
// shows even where the ordinary peak is higher.
//
// # Transient
//
// A [Transient] is the part of an ordinary step's peak that does not stay: blocks
// allocated and freed within the step. The ordinary step is the one with the
// median of these, among steps without a spike, the first excluded.
//
// # Categories
//
// The category of a block follows from its lifetime and from where the program
// was when it began and ended: in set-up, in forward, in the backward pass or in
// the optimizer. The backward pass runs on a thread without Python frames: if a
// file has stacks, an empty one is of the backward pass. Names never decide
// alone; only frames of PyTorch's own files count.
//
//	parameters       from set-up, allocated until the last step ends.
//	                 Certain if nn.Module moved them to the device.
//	gradients        from the backward pass, allocated when the optimizer begins.
//	                 Certain if the optimizer is marked and a parameter has that size.
//	optimizer_state  from the optimizer, allocated after its step: certain.
//	activations      from forward, freed by the backward pass (certain), or held
//	                 by the program until the step ends (likely), or made again
//	                 inside the backward pass.
//	temporaries      begun and ended in the same part of a step.
//	workspace        from forward or backward, once, and never freed. Certain
//	                 if a frame of a library's workspace function shows it.
//	unknown          older than the trace, or the trace has no steps.
//
// If the trace ends before a block is freed, its counterpart in the step before
// decides: the block with the same stack and the same place in the order. The
// confidence is then at most likely. Buffers of a module that stay count as
// parameters.
//
// # Speed
//
// The analysis makes a few passes over the columns: about 0.15 s for a million
// events.
package findings
