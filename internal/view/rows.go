package view

import (
	"context"
	"sort"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// rowList is a list of events by position: those of a filter, or all. If it is
// folded, the end of a free is in the row of its request.
type rowList struct {
	run     *pageRun
	matches int // events, folded or not
	some    []listedRow
	every   bool // there is no filter and nothing is folded
	folded  bool
	initial int64 // allocated before the first event
}

// listedRow is an event of a list.
type listedRow struct {
	event   int32
	ends    bool  // the end of the free is in this row too
	running int64 // the sum of the changes of the rows up to this one
}

func (l *rowList) len() int {
	if l.every {
		return l.matches
	}
	return len(l.some)
}

func (l *rowList) event(i int) int {
	if l.every {
		return i
	}
	return int(l.some[i].event)
}

// running is by how much allocated memory changed up to a row.
func (l *rowList) running(i int) int64 {
	if l.every {
		level := l.run.course.At(i)
		return int64(level.Allocated) - l.initial
	}
	return l.some[i].running
}

// completed is the event with which the free of a row ended, if that has no row.
func (l *rowList) completed(i int) *int {
	if l.every || !l.some[i].ends {
		return nil
	}
	return unless(false, int(l.run.lives.Gone[l.run.lives.BlockOf(l.event(i))]))
}

// from is the position of the first event that is not before one; of one that is
// folded, that of its row.
func (l *rowList) from(event int) int {
	at := sort.Search(l.len(), func(i int) bool { return l.event(i) >= event })
	if !l.folded || event >= l.run.events() || l.run.trace.Events.Action.At(event) != alloc.ActionFreeCompleted || at < l.len() && l.event(at) == event {
		return at
	}
	life := l.run.lives.BlockOf(event)
	if life < 0 {
		return at
	}
	request := int(l.run.lives.Freed[life])
	if i := sort.Search(l.len(), func(i int) bool { return l.event(i) >= request }); i < l.len() && l.event(i) == request && l.some[i].ends {
		return i
	}
	return at
}

// rowList are the events that pass a filter.
func (r *request) rowList(f timeline.Filter, text string, fold bool) (*rowList, error) {
	before := r.run.course.At(-1)
	if text == "" && !fold {
		return &rowList{run: r.run, matches: r.run.events(), every: true, initial: int64(before.Allocated)}, nil
	}
	if fold {
		text += "folded\n"
	}
	r.run.caches.Lock()
	defer r.run.caches.Unlock()
	return r.run.lists.get(text, func() (*rowList, error) {
		l := &rowList{run: r.run, some: []listedRow{}, folded: fold}
		rows := make([]int32, r.run.lives.Len()) // of the requested free of a block, from 1 on
		running := int64(0)
		err := r.run.eachEvent(r.http.Context(), f, func(c *timeline.Cursor, before, after *timeline.Level) {
			l.matches++
			running += int64(after.Allocated) - int64(before.Allocated)
			if life := r.run.lives.BlockOf(c.Index); fold && life >= 0 {
				switch {
				case c.Event.Action == alloc.ActionFreeRequested:
					rows[life] = int32(len(l.some)) + 1
				case c.Event.Action == alloc.ActionFreeCompleted && rows[life] > 0:
					l.some[rows[life]-1].ends = true
					return
				}
			}
			l.some = append(l.some, listedRow{event: int32(c.Index), running: running})
		})
		return l, err
	})
}

// eachEvent visits the events that pass a filter, each with the totals before and
// after it.
func (r *pageRun) eachEvent(ctx context.Context, f timeline.Filter, visit func(c *timeline.Cursor, before, after *timeline.Level)) error {
	m, err := f.For(r.trace)
	if err != nil {
		return badRequest("action %v", err)
	}
	level := r.course.At(-1)
	for c := r.line.Cursor(); c.Next(); {
		if c.Index&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		before := level
		r.course.Step(&level, c.Index)
		if m.Matches(c) {
			visit(c, &before, &level)
		}
	}
	return nil
}
