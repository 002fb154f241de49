// Package problem words what is wrong with a question about a plan.
//
// A text names options, and other parts of the question, in braces: "{batch} is
// missing". Whoever shows it writes them as its users do: [Error.Error] gives
// the bare names, which are those of the fields on the page and of the API, and
// [Flags] gives flags of the command line, as the documents have them.
package problem
