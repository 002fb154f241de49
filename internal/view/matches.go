package view

import (
	"sort"
	"strings"
)

// matchSums are the blocks that pass a filter, in numbers.
type matchSums struct {
	Blocks    int    `json:"blocks"`
	Bytes     uint64 `json:"bytes"`
	Most      uint64 `json:"most_bytes"` // at once
	MostEvent *int   `json:"most_event"` // after which that is first so
	Event     int    `json:"event"`
	Now       uint64 `json:"event_bytes"` // active after Event
	NowBlocks int    `json:"event_blocks"`
	// Previous and Next allocate a block that passes, before and after Event.
	Previous *int `json:"previous"`
	Next     *int `json:"next"`
	// Marks has for pieces of the run of equal width the most bytes at once.
	Marks []uint64 `json:"marks"`
}

// matchList are the blocks that pass a filter and what is known of them without a
// moment.
type matchList struct {
	lives     []int32 // in the order of their allocation
	bytes     uint64
	most      uint64
	mostEvent int
	marks     []uint64
}

// selectionKey is the same text for the same filter.
func (r *request) selectionKey() string {
	var key strings.Builder
	for _, name := range []string{"stack", "min", "max", "stream", "pool", "alive", "never_freed", "like", "pick", "color", "x", "n"} {
		key.WriteString(r.query.values.Get(name) + "\n")
	}
	return key.String()
}

// matching is api/matches.
func (r *request) matching() error {
	of := r.run.blocks()
	chosen, event := r.selection(of), r.moment()
	w := r.window(r.query.integer("n", 1200, 1, maxWidth))
	if r.query.err != nil {
		return r.query.err
	}
	r.run.caches.Lock()
	found, err := r.run.filtered.get(r.selectionKey(), func() (*matchList, error) { return r.run.matchList(chosen, w), nil })
	r.run.caches.Unlock()
	if err != nil {
		return err
	}
	m := matchSums{Blocks: len(found.lives), Bytes: found.bytes, Most: found.most, Event: event, Marks: found.marks}
	if found.most > 0 {
		m.MostEvent = &found.mostEvent
	}
	for _, i := range found.lives {
		if int(of.Born[i]) <= event && event < int(of.Gone[i]) {
			m.Now += of.Size[i]
			m.NowBlocks++
		}
	}
	born := func(k int) int { return int(of.Born[found.lives[k]]) }
	next := sort.Search(len(found.lives), func(k int) bool { return born(k) > event })
	if next < len(found.lives) {
		m.Next = unless(false, born(next))
	}
	for next--; next >= 0 && born(next) == event; next-- {
	}
	if next >= 0 && born(next) >= 0 {
		m.Previous = unless(false, born(next))
	}
	return r.json(m)
}

// matchList finds the blocks that pass and adds them up over the run.
func (r *pageRun) matchList(chosen *selection, w *window) *matchList {
	of, n := chosen.of, r.events()
	out := &matchList{mostEvent: -1, marks: make([]uint64, len(w.ends))}
	change := make([]uint64, n+1) // after event i-1; unsigned sums come out right
	for i := range of.Len() {
		if !chosen.has(i) {
			continue
		}
		out.lives = append(out.lives, int32(i))
		out.bytes += of.Size[i]
		change[of.Born[i]+1] += of.Size[i]
		if gone := int(of.Gone[i]); gone < n {
			change[gone+1] -= of.Size[i]
		}
	}
	now, column := uint64(0), 0
	for i, c := range change {
		now += c
		if now > out.most {
			out.most, out.mostEvent = now, i-1
		}
		for column < len(w.ends)-1 && int(w.ends[column]) < i-1 {
			column++
			out.marks[column] = now - c
		}
		out.marks[column] = max(out.marks[column], now)
	}
	for column++; column < len(out.marks); column++ {
		out.marks[column] = now
	}
	return out
}
