package stats

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// The values of [Dump.Source].
const (
	JSON    = "json"
	Python  = "python"
	Summary = "summary"
	// Recorded is a dump inside a snapshot.
	Recorded = "snapshot"
)

// Dump is one memory_stats() of one device.
type Dump struct {
	Device int // -1 if the text does not say
	// Label is what the text calls the dump: the keys above it, or the words
	// before it on its line.
	Label string
	// Values holds the known keys. A value that is not exact is the middle of
	// its range.
	Values map[string]int64
	// Exact is false for a dump read from a table of memory_summary().
	Exact bool
	// Ranges holds the values that are not exact.
	Ranges map[string]units.Range
	// Extra holds whole numbers under keys that are not known: counters of
	// other versions.
	Extra map[string]int64

	Missing []string // keys of [Keys] the dump does not have, sorted
	Unknown []string // keys it has that are none of them, in order
	Source  string
	Line    int // where it begins, from 1
}

// ErrNotFound is the error for a text without a dump.
var ErrNotFound = errors.New(`no memory_stats() dump found: looked for a JSON object or printed Python dict with keys such as ` +
	`"allocated_bytes.all.current" or "num_alloc_retries", and for a "PyTorch CUDA memory summary" table`)

// SyntaxError is the error for a dump that cannot be read.
type SyntaxError struct {
	Line, Column int // from 1, the column in characters
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("memory_stats() dump: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// FromValues returns the dump of a device whose values were read elsewhere, as
// those that a recorder keeps inside a snapshot.
func FromValues(device int, values map[string]int64) *Dump {
	d := newDump(Recorded)
	d.Device, d.Exact = device, true
	for key, n := range values {
		if known(key) {
			d.Values[key] = n
			continue
		}
		d.Unknown = append(d.Unknown, key)
		d.Extra[key] = n
	}
	slices.Sort(d.Unknown)
	d.finish()
	return d
}
