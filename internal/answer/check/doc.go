// Package check holds a recorded run against rules: the gate behind `ashlar
// check`, made for continuous integration.
//
// # Rules
//
// A rule compares a value of a file with a bound: a peak, a fraction, the room
// below a limit, what a replay under a limit reserves, the growth since an
// older file. [Run] gives one [Result] for each rule that was set.
//
// # What a file cannot tell
//
// Values are ranges. Most are one number, but a file that ends early shows only
// that a peak was at least so high, and a table of memory_summary() rounds. A
// rule holds if it holds for the whole range and fails if it fails for all of
// it. In between nobody can tell, and Result.Passed is nil: a gate must not
// open because a file is broken.
//
// # Mid-run
//
// A recording that starts mid-run has the peaks of its own part. They count,
// and the notes say so.
package check
