package ordered

import (
	"iter"
	"slices"
)

// rowLen is how many keys lie in a row: few enough to move, enough to keep the list of rows short.
const rowLen = 128

// Map is a map from keys in order. The zero value is empty. Values that it returns are good until it changes.
type Map[V any] struct {
	firsts []uint64 // no key of a row is below, and none of the row before it is not
	rows   []*row[V]
	n      int
}

// row is never empty.
type row[V any] struct {
	keys   []uint64
	values []V
}

// Len returns how many keys there are.
func (m *Map[V]) Len() int { return m.n }

// find returns the place of the first key that is not below k, in the row where k belongs, which may be its end.
func (m *Map[V]) find(k uint64) (r, at int, found bool) {
	r, found = slices.BinarySearch(m.firsts, k)
	if !found && r > 0 {
		r--
	}
	if r == len(m.rows) {
		return r, 0, false
	}
	at, found = slices.BinarySearch(m.rows[r].keys, k)
	return r, at, found
}

// Get returns the value of a key, or nil.
func (m *Map[V]) Get(k uint64) *V {
	r, at, found := m.find(k)
	if !found {
		return nil
	}
	return &m.rows[r].values[at]
}

// Set gives a key a value.
func (m *Map[V]) Set(k uint64, v V) {
	r, at, found := m.find(k)
	switch {
	case found:
		m.rows[r].values[at] = v
		return
	case len(m.rows) == 0:
		m.insertRow(0, k, &row[V]{})
	case len(m.rows[r].keys) == rowLen:
		r, at = m.split(r, at, k)
	}
	of := m.rows[r]
	of.keys, of.values = slices.Insert(of.keys, at, k), slices.Insert(of.values, at, v)
	m.firsts[r] = min(m.firsts[r], k)
	m.n++
}

// split makes room in a full row for a key that belongs at a place of it, and returns its place then. What is added at the
// end of all gets a row of its own, so that rows are full where keys come in order.
func (m *Map[V]) split(r, at int, k uint64) (int, int) {
	of := m.rows[r]
	half := rowLen / 2
	if at == rowLen && r == len(m.rows)-1 {
		half = rowLen
	}
	upper := &row[V]{keys: slices.Clone(of.keys[half:]), values: slices.Clone(of.values[half:])}
	first := k
	if half < rowLen {
		first = upper.keys[0]
	}
	of.keys, of.values = slices.Delete(of.keys, half, rowLen), slices.Delete(of.values, half, rowLen)
	m.insertRow(r+1, first, upper)
	if at < half || at == half && half < rowLen && k < first {
		return r, at
	}
	return r + 1, at - half
}

func (m *Map[V]) insertRow(r int, first uint64, of *row[V]) {
	m.firsts, m.rows = slices.Insert(m.firsts, r, first), slices.Insert(m.rows, r, of)
}

// Delete removes a key, and reports whether it was there.
func (m *Map[V]) Delete(k uint64) bool {
	r, at, found := m.find(k)
	if !found {
		return false
	}
	of := m.rows[r]
	of.keys, of.values = slices.Delete(of.keys, at, at+1), slices.Delete(of.values, at, at+1)
	if len(of.keys) == 0 {
		m.firsts, m.rows = slices.Delete(m.firsts, r, r+1), slices.Delete(m.rows, r, r+1)
	}
	m.n--
	return true
}

// Before returns the highest key that is not above k, with its value; nil if there is none.
func (m *Map[V]) Before(k uint64) (uint64, *V) {
	r, at, found := m.find(k)
	if !found {
		at--
	}
	if at < 0 {
		if r--; r < 0 {
			return 0, nil
		}
		at = len(m.rows[r].keys) - 1
	}
	return m.rows[r].keys[at], &m.rows[r].values[at]
}

// After returns the lowest key that is not below k, with its value; nil if there is none.
func (m *Map[V]) After(k uint64) (uint64, *V) {
	for key, v := range m.From(k) {
		return key, v
	}
	return 0, nil
}

// All yields the keys in order, with their values. The map must not change meanwhile.
func (m *Map[V]) All() iter.Seq2[uint64, *V] { return m.From(0) }

// From is All for the keys that are not below k.
func (m *Map[V]) From(k uint64) iter.Seq2[uint64, *V] {
	return func(yield func(uint64, *V) bool) {
		r, at, _ := m.find(k)
		for ; r < len(m.rows); r++ {
			of := m.rows[r]
			for ; at < len(of.keys); at++ {
				if !yield(of.keys[at], &of.values[at]) {
					return
				}
			}
			at = 0
		}
	}
}

// Clone returns a map of its own, with the same values.
func (m *Map[V]) Clone() Map[V] {
	c := Map[V]{firsts: slices.Clone(m.firsts), rows: make([]*row[V], len(m.rows)), n: m.n}
	for i, r := range m.rows {
		c.rows[i] = &row[V]{slices.Clone(r.keys), slices.Clone(r.values)}
	}
	return c
}
