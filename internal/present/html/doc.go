// Package html writes the report that is attached to a ticket or a mail:
// one HTML file with the verdict on a run, its curves, the map of its segments,
// who holds the memory, and what other settings would have done.
//
// # What it promises
//
//   - It stands alone: styles and pictures are in the file, nothing is loaded from
//     elsewhere, and there is no script. A content security policy in the file
//     enforces that.
//   - It is smaller than [MaxBytes], whatever the run. Points of curves, columns
//     of the map, lists and texts are bounded. If that is not enough, lists are
//     cut further.
//   - It trusts no name. Anybody may have written the names of files, functions
//     and annotations: unprintable characters are replaced, and html/template
//     escapes the rest.
//   - It is reproducible: the same input makes the same bytes.
//
// # Where the numbers come from
//
// This package computes only where things are drawn. The verdict comes from
// package explain, predictions from package whatif, statistics from package
// stats, curves and map from package timeline. Sentences that the commands print
// too come from package text. A number that a machine may want to read is in a
// data element with its exact value.
//
// # Pictures
//
// A curve shows the maximum within each column, so no peak is lost however many
// events there are. The map of segments has one scale: the area of each colour is
// its share of the bytes, even where blocks are much smaller than a pixel. See
// curve.go and segments.go.
package html
