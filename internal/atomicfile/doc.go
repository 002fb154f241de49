// Package atomicfile writes files that appear under their names only when they are
// complete.
package atomicfile
