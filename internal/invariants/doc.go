// Package invariants enables checks that are too slow for production: build with
// -tags invariants. Without the tag they compile to nothing.
package invariants
