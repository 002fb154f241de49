// Package problem describes what is wrong with a question about a plan.
//
// A message names options, and other parts of the question, in braces: "{batch}
// is missing". [Error.Error] writes them as bare names, which are the fields of
// the page and the API; [Flags] writes them as command-line flags.
package problem
