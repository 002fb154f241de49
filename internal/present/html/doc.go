// Package html writes the report that is attached to a ticket or a mail:
// one HTML file with the verdict on a run, its curves, the map of its segments,
// who holds the memory, and what other settings would have done.
//
// # What it promises
//
//   - It stands alone: styles and pictures are in the file, nothing is loaded from
//     elsewhere, and there is no script. A content security policy in the file
//     says so to the browser.
//   - It is small, whatever it is about: less than [MaxBytes]. Curves have a
//     bounded number of points, the map a bounded number of columns, lists and
//     texts an end. If that is not enough, lists get shorter until it is.
//   - It trusts no name. Names of files, functions and annotations were written
//     by anybody; html/template escapes all of them, and what cannot be printed is
//     replaced first.
//   - It is reproducible: the same input makes the same bytes.
//
// # Where the numbers come from
//
// Nothing is computed here but where things are drawn. The verdict is that of
// package explain, the predictions are those of package whatif, the facts those of
// package facts; curves and map are read from package timeline. Sentences that the
// text of the commands has too come from package report. A number that a
// machine may want to read stands in a data element with its exact value.
//
// # Pictures
//
// A curve shows the highest of each of its columns, so no peak is lost however
// many events there are. The map of segments is drawn to one scale: the area of
// each colour is its share of the bytes, even where blocks are much smaller than
// a pixel. See curve.go and segments.go.
package html
