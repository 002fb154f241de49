package settings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// formatDivisions writes a table in the shortest form that [Parse] reads back:
// nothing for all zeros, one number for sixteen equal ones, else the list with
// the fewest entries, and of those the one with the fewest ">".
//
// Of all lists it is enough to look at those of one shape. The first numeric
// key fills the table up to its entry. From there on the walk goes upwards
// over a base that the rest of the table holds: 0 at first, w after ">:w",
// which may stand behind any key and rewrites everything above it. Where the
// wanted entry is not the base, it gets a key of its own. Entries below the
// first key that differ from its fill are mended at the end.
func formatDivisions(table [16]uint64) string {
	if table == [16]uint64{} {
		return ""
	}
	equal := func(entries []uint64) bool { return len(slices.Compact(slices.Clone(entries))) == 1 }
	if equal(table[:]) {
		return strconv.FormatUint(table[0], 10)
	}
	if table[0] == 0 && equal(table[1:]) {
		return "[>:" + strconv.FormatUint(table[1], 10) + "]"
	}
	w := divisionWriter{table: table, memo: map[divisionState]string{}}
	best := ""
	for first := range table {
		list := w.key(first) + w.rebased(first+1, 0)
		for i := range table[:first] {
			if table[i] != table[first] {
				list += w.key(i)
			}
		}
		if best == "" || shorter(list, best) {
			best = list
		}
	}
	return "[" + best[1:] + "]"
}

// divisionWriter finds the shortest entries for the upper part of a table.
// Each entry is written with a comma before it.
type divisionWriter struct {
	table [16]uint64
	memo  map[divisionState]string
}

type divisionState struct {
	from int    // entries below are done
	base uint64 // what the others hold
}

// key writes entry i by its own key.
func (w *divisionWriter) key(i int) string {
	return "," + strconv.Itoa(1<<i) + ":" + strconv.FormatUint(w.table[i], 10)
}

// upper writes the entries from from on.
func (w *divisionWriter) upper(from int, base uint64) string {
	if from == len(w.table) {
		return ""
	}
	state := divisionState{from, base}
	if list, ok := w.memo[state]; ok {
		return list
	}
	list := w.key(from) + w.rebased(from+1, base)
	if w.table[from] == base {
		if plain := w.upper(from+1, base); !shorter(list, plain) {
			list = plain
		}
	}
	w.memo[state] = list
	return list
}

// rebased is upper right behind a key, where ">:w" may change the base.
func (w *divisionWriter) rebased(from int, base uint64) string {
	best := w.upper(from, base)
	for i := from; i < len(w.table); i++ {
		if v := w.table[i]; v != base {
			list := ",>:" + strconv.FormatUint(v, 10) + w.upper(from, v)
			if shorter(list, best) {
				best = list
			}
		}
	}
	return best
}

// shorter reports whether list a is preferred to b.
func shorter(a, b string) bool {
	return cmp.Or(
		cmp.Compare(strings.Count(a, ":"), strings.Count(b, ":")),
		cmp.Compare(strings.Count(a, ">"), strings.Count(b, ">")),
		cmp.Compare(len(a), len(b)),
	) < 0
}
