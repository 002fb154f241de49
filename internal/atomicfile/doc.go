// Package atomicfile writes files that appear under their names when they are
// complete, and not before.
package atomicfile
