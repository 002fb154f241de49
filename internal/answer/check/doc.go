// Package check checks a recorded run against rules: the gate behind `ashlar
// check`, for continuous integration.
//
// # Rules
//
// A rule compares a value of a file with a bound: a peak, a fraction, the
// headroom below a limit, what a replay under a limit reserves, the growth since
// an older file, what a step leaves behind, how often the cache had to be
// released, how many requests failed. [Run] returns one [Result] for each rule.
//
// Without rules there is to be no leak, no retry and no failed request; with
// rules still no failed request, unless one allows them: a run that died is not
// good because it died early.
//
// # Values that are ranges
//
// Most values are one number. But a file that ends early only gives a lower bound
// of a peak, and a table of memory_summary() is rounded, so every value is a
// range. A rule passes if the whole range does and fails if the whole range does.
// Otherwise Result.Passed is nil: a gate must not open because a file is broken.
//
// # Mid-run
//
// A recording that starts mid-run has the peaks of its part of the run. The rules
// use those, and the notes say so.
package check
