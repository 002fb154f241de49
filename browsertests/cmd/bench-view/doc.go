// Bench-view measures the page of ashlar view as a user sees it: the time from
// the command to the numbers, the curve and the verdict, and how fast the
// timeline responds. The browser is already running, with software GL, in a
// window of 1600x900.
//
//	go run ./cmd/bench-view -ashlar ../bin/ashlar
//
// It writes a file of a million events and eight of 100,000, and removes them
// again. The figures go to docs/measured/view.md.
package main
