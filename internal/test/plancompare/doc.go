// Package plancompare compares planned runs with recordings of real ones.
//
// A recording is PyTorch's memory history of a whole run: every allocation and
// every free in order, with the op and the Python frames that made it, the
// statistics at the end, and the model's parameters. It is kept as a
// [ledger.Ledger], the planner's own form, so that the same code reads both sides
// of a comparison.
//
// The two sides share no names of tensors. Tensors are matched by size and order:
// the longest common subsequence of the sizes of births, phase by phase, pairs
// planned with recorded tensors, and a death belongs to the birth that it ends.
// The rest is what the plan lacks ("missing"), has too much ("extra"), or frees
// at another moment ("moved").
//
// The recordings are in testdata/plan/runs, one file each. The package is for
// tests and for the maintainers' tool tools/plandiff; no command needs it.
package plancompare
