// Package plan predicts the memory of a run before it is made: will it fit, what
// is the peak made of, and what is the cheapest way to make it fit.
//
// # How
//
// A plan is not a formula. The model that a config.json describes is run
// symbolically, op by op, as PyTorch and transformers run it (packages hf and
// eager): building it and three steps of training, or a prompt and the tokens
// after it. What comes out is a [ledger.Ledger]: every tensor with its size, its
// birth and its death, in order. The ledger is a program of calls to the
// allocator, and the engine that replays recordings replays it too. So rounding,
// blocks that are not split, segments and fragmentation are those of PyTorch,
// and a plan answers for any setting of the allocator.
//
// Three steps are run because the optimizer's state is born in the first one,
// among activations that were freed: that history decides what is reserved. The
// peaks of the third step are reported, as a measurement does that resets the
// statistics before it.
//
// # Answers
//
// [Ask] says whether the run fits, its peaks with ranges, the smallest limit it
// passes under, what the peak is made of and what would save memory.
// [FindLargest] looks for the largest batch or sequence, [FindRecompute] for the
// layers to recompute, [Sweep] plans many. [Trace] writes the planned run as
// PyTorch's memory history would have it, and [Compare] holds a plan against
// such a history.
//
// # Fits
//
// A run fits if its replay under the limit, on a device of that size, has no
// request that fails. That is more than comparing two numbers: before it gives
// up, the allocator releases what it has cached, and some runs pass with less
// than they reserve when there is room.
//
// # Levers
//
// What would save memory is not looked up: each change is planned and replayed
// like the job itself, and only what saves is named. What it costs is counted in
// the matrix products that are repeated.
package plan
