// Package plancompare compares planned runs with recordings of real ones.
//
// A recording is what PyTorch's memory history tells of a whole run: every
// allocation and every free in order, with the op and the Python frames that
// made it, the statistics that were read at the end, and the model's parameters.
// It is kept as a [ledger.Ledger], the planner's own form, so that both sides
// of a comparison are read by the same code.
//
// Tensors have no names that both sides share. They are matched by size and
// order: the longest common subsequence of the sizes of births, phase by phase,
// pairs planned with recorded tensors, and a death belongs to the birth that it
// ends. What is left over is what the plan lacks ("missing"), has too much
// ("extra"), or frees at another moment ("moved").
//
// The recordings are in testdata/plan/runs, one file each. The package is for
// tests and for the developer's tool internal/plandiff; no command needs it.
package plancompare
