// Package documented checks docs/json.md against the types that are printed: a
// test fails if a command prints a field that no page explains.
package documented
