// Package plan predicts the memory of a run before it starts: whether it fits,
// what its peak consists of, and what is the cheapest way to make it fit.
//
// # How
//
// A plan is not a formula. The model that a config.json describes is run
// symbolically, op by op, as PyTorch and transformers run it (packages hf and
// eager): building it and three steps of training, or a prompt and the tokens
// after it. The result is a [ledger.Ledger]: every tensor with its size, its
// birth and its death, in order. The ledger is a program of calls to the
// allocator, and the engine that replays recordings replays it too. So rounding,
// unsplit blocks, segments and fragmentation are those of PyTorch, and a plan
// can be made for any allocator setting.
//
// Three steps are run because the optimizer's state is born in the first one,
// among freed activations, and that history decides what is reserved. The plan
// reports the peaks of the third step, like a measurement that resets the
// statistics before it.
//
// # Answers
//
// [Ask] answers whether the run fits, its peaks with ranges, the smallest limit
// under which it runs, what the peak consists of and what would save memory.
// [FindLargest] finds the largest batch or sequence, [FindRecompute] the layers
// to recompute, and [Sweep] plans many jobs. [Trace] writes the planned run as
// PyTorch's memory history, and [Compare] compares a plan with a recorded one.
//
// # Fits
//
// A run fits if no request fails in its replay under the limit, on a device of
// that size. That is more than comparing two numbers: before a request fails,
// the allocator releases cached memory, and some runs get by with less than
// they reserve without a limit.
//
// # Levers
//
// Savings are not looked up in a table: each change is planned and replayed like
// the job itself, and only changes that save memory are listed. The cost of a
// change is the matrix products that it repeats.
package plan
