// Package documented holds docs/json.md to the types that are printed: a field
// that a program prints and no page explains is a fault that tests find.
package documented
