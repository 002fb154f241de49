// Package answer has what the documents of all answers share: their head, and
// how they are written.
//
// Each package below it answers one command. Its Document type is what that
// command prints with --json, field by field as docs/json.md lists it, and what
// the page of ashlar view gets.
package answer
