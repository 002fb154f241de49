// Command claims writes docs/claims.md: what is often said about GPU memory, each
// with the experiment that decides it, its figures, and a verdict.
//
// A verdict is computed: a row has the values of an experiment, one for each run or
// size, and a rule for one value. If all values follow the rule, the claim holds; if
// none does, it does not; otherwise it holds when the row says. What was not measured
// is open.
//
// Values come from the command ashlar, which is run on the recordings in testdata;
// from the runs that were measured on a GPU (testdata/measured.jsonl, testdata/fresh
// and testdata/claims/gpu.jsonl, which tools/bench/gpu/claims.py writes); and from the
// tables in docs/measured.
package main
