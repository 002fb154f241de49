package verify

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/ordered"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
)

// Events have their pool from PyTorch 2.12 on. Before, segments that are still
// there at the end do; the pools of others are inferred (spec 16): all allocations
// in a segment share its pool, and an allocation that passes over a fitting free
// block belongs to another pool than the block.

// poolMap has the pool of every allocation and release of a trace. The nil
// map says the default pool for all.
type poolMap struct {
	rows  *rows
	spans []span
	byRow []int32 // row -> position in spans plus one
	guess map[int]alloc.PoolID
}

// span is the life of one plain segment, or of one mapped run that is there at
// the end.
type span struct {
	addr, size uint64
	pool       alloc.PoolID
	known      bool // the file has the pool
	freed      int  // which run of releases it went in, from 1 on; 0 if it stayed
}

// conflict is a place where the engine went elsewhere than the trace.
type conflict struct {
	at   int
	want recorded.Event
	got  alloc.Event
}

// newPoolMap finds the segment of every allocation and release.
func newPoolMap(r *rows, start *start.State) *poolMap {
	t := r.trace
	m := &poolMap{rows: r, byRow: make([]int32, r.Len()), guess: map[int]alloc.PoolID{}}
	var live ordered.Map[int] // plain segments
	add := func(s span) {
		m.spans = append(m.spans, s)
		live.Set(s.addr, len(m.spans)-1)
	}
	var runs ordered.Map[int] // expandable: runs of the final state stand for their reservation
	for i := range t.Segments {
		if s := &t.Segments[i]; s.Expandable {
			m.spans = append(m.spans, span{addr: s.Address, size: s.TotalSize, pool: s.Pool, known: true})
			runs.Set(s.Address, len(m.spans)-1)
		}
	}
	for i := range start.Segments {
		if s := &start.Segments[i]; !s.Expandable {
			add(span{addr: s.Address, size: s.TotalSize, pool: s.Pool, known: s.Pool != alloc.PoolID{}})
		}
	}
	releases := 0
	for row := range r.Len() {
		e := r.At(row)
		switch r.Action(row) {
		case alloc.ActionSegmentAlloc:
			add(span{addr: e.Addr, size: e.Size})
		case alloc.ActionSegmentFree:
			if row == 0 || !r.isRelease(row-1) {
				releases++
			}
			if id := live.Get(e.Addr); id != nil {
				m.byRow[row] = int32(*id) + 1
				m.spans[*id].freed = releases
				live.Delete(e.Addr)
			}
			continue
		case alloc.ActionAlloc, alloc.ActionSegmentMap, alloc.ActionSegmentUnmap:
		default:
			continue
		}
		for _, of := range [2]*ordered.Map[int]{&live, &runs} {
			if addr, id := of.Before(e.Addr); id != nil && e.Addr-addr < m.spans[*id].size {
				m.byRow[row] = int32(*id) + 1
				break
			}
		}
	}
	for i := range t.Segments {
		s := &t.Segments[i]
		if id := live.Get(s.Address); id != nil && !s.Expandable {
			m.spans[*id].pool, m.spans[*id].known = s.Pool, s.HasPool
		}
	}
	return m
}

// poolOf returns the pool of the allocation or release in a row.
func (m *poolMap) poolOf(row int) alloc.PoolID {
	if m == nil {
		return alloc.PoolID{}
	}
	if pool, ok := m.rows.pool(row); ok || m.byRow[row] == 0 {
		return pool
	}
	id := int(m.byRow[row]) - 1
	if p, ok := m.guess[id]; ok {
		return p
	}
	return m.spans[id].pool
}

// last returns the private pool used last before a row; a made-up one if there
// is none.
func (m *poolMap) last(row int) alloc.PoolID {
	for i := row - 1; m != nil && i >= 0; i-- {
		if p := m.poolOf(i); p != (alloc.PoolID{}) {
			return p
		}
	}
	return alloc.PoolID{First: madeUp, Second: 1}
}

// madeUp is the first part of the ids of pools that had to be inferred.
const madeUp = 1 << 40

// options returns the changes that would explain a conflict: the segment that
// the trace used, or the one that the engine used, belongs to another pool.
func (m *poolMap) options(c *conflict) []*poolMap {
	if m == nil || c == nil {
		return nil
	}
	if _, told := m.rows.pool(c.at); told {
		return nil
	}
	var out []*poolMap
	try := func(id int) {
		if id < 0 || m.spans[id].known {
			return
		}
		if _, guessed := m.guess[id]; guessed {
			return
		}
		// Segments that are given back together, but not with all others, are
		// those of a pool that is deleted: try the whole run first.
		together := m.freedWith(id)
		for _, pool := range m.candidates() {
			if len(together) > 1 {
				out = append(out, m.with(pool, together...))
			}
			out = append(out, m.with(pool, id))
		}
	}
	row := c.at
	for row < len(m.byRow) && m.byRow[row] == 0 && row < c.at+8 {
		row++
	}
	if row < len(m.byRow) {
		try(int(m.byRow[row]) - 1) // where the trace went
	}
	if c.got.Action == alloc.ActionAlloc {
		for id := range m.spans { // where the engine went
			if s := &m.spans[id]; c.got.Addr >= s.addr && c.got.Addr-s.addr < s.size && m.usedBy(id, c.at) {
				try(id)
			}
		}
	}
	return out
}

// with returns the map with some segments moved to a pool.
func (m *poolMap) with(pool alloc.PoolID, ids ...int) *poolMap {
	n := *m
	n.guess = maps.Clone(m.guess)
	for _, id := range ids {
		n.guess[id] = pool
	}
	return &n
}

// freedWith lists the segments of unknown pool that went in the same run of
// releases as the given one.
func (m *poolMap) freedWith(id int) []int {
	if m.spans[id].freed == 0 {
		return nil
	}
	var out []int
	for i := range m.spans {
		if _, guessed := m.guess[i]; m.spans[i].freed == m.spans[id].freed && !guessed && !m.spans[i].known {
			out = append(out, i)
		}
	}
	return out
}

// usedBy reports whether a span was in use before a row.
func (m *poolMap) usedBy(id, row int) bool {
	for i := row - 1; i >= 0; i-- {
		if int(m.byRow[i])-1 == id {
			return true
		}
	}
	return false
}

// candidates returns the pools a segment could belong to: those already
// inferred, those the file names, and a new one.
func (m *poolMap) candidates() []alloc.PoolID {
	var out []alloc.PoolID
	n := uint64(0)
	for _, p := range m.guess {
		if p.First == madeUp {
			n = max(n, p.Second)
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, s := range m.spans {
		if s.known && s.pool != (alloc.PoolID{}) && !slices.Contains(out, s.pool) {
			out = append(out, s.pool)
		}
	}
	slices.SortFunc(out, func(x, y alloc.PoolID) int {
		return cmp.Or(cmp.Compare(y.First, x.First), cmp.Compare(y.Second, x.Second))
	})
	return append([]alloc.PoolID{{First: madeUp, Second: n + 1}}, out...)
}

// inferred returns the number of segments whose pool is a guess.
func (m *poolMap) inferred() int {
	if m == nil {
		return 0
	}
	return len(m.guess)
}
