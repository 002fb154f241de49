// Bench-view measures the page of ashlar view as a person meets it: from the
// command to the numbers, the curve and the verdict, and how fast the timeline
// answers. The browser runs already, with software GL, in a window of 1600x900.
//
//	go run ./cmd/bench-view -ashlar ../bin/ashlar
//
// It makes a file of a million events and eight of 100,000 and removes them. The
// figures go to docs/measured/view.md.
package main
