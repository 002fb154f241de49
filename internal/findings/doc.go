// Package findings tells what memory does over the steps of a program, and what
// it is for: leaks, spikes, what a step's peak is made of, and who holds the
// memory at any moment.
//
// Everything is computed from one trace. The sizes of blocks come from a replay;
// where that is not identical they are the requested ones.
//
//	a := findings.New(lives, annotations)
//	found := a.Find()                   // leaks, spikes, the transient of a step
//	holders := a.Holders(a.PeakEvent()) // by stack, line, module, category
//
// # Steps
//
// [Analysis].Steps says how they were found and how sure that is. The first of
// these that a file has is taken:
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
//     Where the program trains, a step is the innermost loop whose rounds end
//     with an update; where it does not, the outermost that begins with
//     something of its own: a request rather than a token.
//
// Set-up comes before the first step. The last step may be incomplete, and what
// follows the last one, other work or the end of the program, belongs to none.
//
// # Leaks
//
// A [Leak] is memory that a step allocates and that is still there when the last
// complete step ends, step after step, and, if a request fails later on or the
// trace breaks off a step, still there then. Of the first step everything may stay
// (state, caches) and of the last one things may not be dropped yet, so neither
// is evidence. It is no leak if it stops (a cache that is full), slows down (a
// cache that fills), goes for what comes (a buffer that is replaced, a window
// over the last steps) or has been dropped before (results of an epoch). What
// goes after the last step, as when the program ends, has leaked until then.
// Stacks that one line of the program led to count together. And whatever the
// numbers say: see [WhereNotWho].
//
// # Spikes
//
// A [Spike] is memory from stacks that only some steps have, half of them at
// most: saving, evaluating. Sizes that vary are none; nor is what only the first
// steps do, what begins at some point and stays, or what replaces something that
// the other steps have instead. It is measured against the lowest level of its
// step, so it shows even where the ordinary peak is higher.
//
// # Transient
//
// A [Transient] is what the peak of an ordinary step is made of besides what
// stays: blocks allocated and freed within the step. The ordinary step is the
// one in which they are the median, of those without a spike and but the first.
//
// # Categories
//
// What a block is for follows from its life and from where the program was when
// it began and ended: in set-up, forward, in the backward pass or in the
// optimizer. The backward pass runs on a thread without Python frames, so where
// a file has stacks, those without frames are its. Names never decide alone; the
// frames that are looked for are those of PyTorch's own files.
//
//	parameters       from set-up, there as long as the steps go.
//	                 Certain if nn.Module moved them to the device.
//	gradients        from the backward pass, there when the optimizer begins.
//	                 Certain if the optimizer is marked and a parameter has that size.
//	optimizer_state  from the optimizer, there after its step: certain.
//	activations      from forward, freed by the backward pass (certain), or held
//	                 by the program until the step ends (likely), or made again
//	                 inside the backward pass.
//	temporaries      begun and ended in the same part of a step.
//	workspace        from forward or backward, once, and there for good. Certain
//	                 if a frame of a library's workspace function shows it.
//	unknown          older than the trace, or the trace has no steps.
//
// Where the trace ends before a block does, the counterpart of the block in the
// step before decides: the one that the same stack allocated as the so-many-th.
// Then the confidence is at most likely. Buffers of a module that stay count as
// parameters.
//
// # Speed
//
// All of it takes a few passes over the columns, about 0.15 s for a million
// events.
package findings
