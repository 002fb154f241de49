package view

import (
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// maxRows is how many events one answer has: several screens of them.
const maxRows = 1000

// eventRow is an event with the totals after it.
type eventRow struct {
	Event     int     `json:"event"`
	Action    string  `json:"action"`
	Address   *uint64 `json:"address"`
	Size      uint64  `json:"size_bytes"`
	Stream    uint64  `json:"stream"`
	Time      *int64  `json:"time"`
	Since     *int64  `json:"since_us"`
	Reserved  uint64  `json:"reserved_bytes"`
	Allocated uint64  `json:"allocated_bytes"`
	Active    uint64  `json:"active_bytes"`
	// Running is by how much allocated memory changed by the events of the list up
	// to this one.
	Running    int64              `json:"running_bytes"`
	Alloc      *int               `json:"alloc"`
	Category   *findings.Category `json:"category"`        // of the block
	Completed  *int               `json:"completed_event"` // of a free that is folded into its request
	Site       *string            `json:"site"`
	DeviceFree *uint64            `json:"device_free_bytes"`
	Frames     []placedFrame      `json:"frames,omitempty"`
}

// eventList is a piece of the events that pass a filter.
type eventList struct {
	Total   int        `json:"total"`
	Matches int        `json:"matches"` // events, however many rows they take
	Listed  int        `json:"listed"`  // rows
	First   int        `json:"first_match"`
	Rows    []eventRow `json:"rows"`
	Next    *int       `json:"next"`
}

// eventFilter reads the parameters that choose events. The text is the same for
// the same filter; it is empty if there is none.
func (r *request) eventFilter() (f timeline.Filter, text string) {
	q := r.query
	f = timeline.Filter{Min: q.size("min_size", 0), Addr: q.handle("addr"), Stream: q.handle("stream"), Pool: q.pool("pool")}
	if q.has("max_size") {
		most := q.size("max_size", 0)
		f.Max = &most
	}
	if a := q.values.Get("action"); a != "" {
		f.Actions = strings.Split(a, ",")
	}
	if q.has("stack") {
		f.Stack = q.expression("stack")
	}
	var key strings.Builder
	for _, name := range []string{"action", "stack", "min_size", "max_size", "addr", "stream", "pool"} {
		if v := q.values.Get(name); v != "" {
			key.WriteString(name + "=" + v + "\n")
		}
	}
	return f, key.String()
}

// events is api/events.
func (r *request) events() error {
	q, n := r.query, r.run.events()
	count, frames := q.integer("count", 100, 1, maxRows), q.flag("frames")
	backwards := q.choice("dir", "1", "-1") == "-1"
	start := 0
	if backwards {
		start = n
	}
	from := q.integer("from", start, 0, n)
	row := q.integer("row", -1, 0, n)
	fold := q.flag("fold")
	f, text := r.eventFilter()
	if q.err != nil {
		return q.err
	}
	list, err := r.rowList(f, text, fold)
	if err != nil {
		return err
	}
	first := list.from(from)
	if row >= 0 {
		first = min(row, list.len())
	}
	last := min(first+count, list.len())
	if backwards {
		first, last = max(first-count, 0), first
	}
	rows := make([]eventRow, 0, last-first)
	for i := first; i < last; i++ {
		one := r.run.row(list.event(i), frames)
		one.Running, one.Completed = list.running(i), list.completed(i)
		rows = append(rows, one)
	}
	var next *int
	switch {
	case backwards && first > 0:
		next = unless(false, list.event(first)) // rows before this one
	case !backwards && last < list.len():
		next = unless(false, list.event(last))
	}
	return r.json(eventList{n, list.matches, list.len(), first, rows, next})
}

// row puts one event together.
func (r *pageRun) row(event int, frames bool) eventRow {
	e, level := r.trace.Events.At(event), r.course.At(event)
	out := eventRow{
		Event: event, Action: r.trace.Events.ActionName(e.Action), Size: e.Size, Stream: e.Stream, Time: r.time(event),
		Reserved: level.Reserved, Allocated: level.Allocated, Active: level.Active,
	}
	if out.Time != nil {
		since := *out.Time - r.clock.First
		out.Since = &since
	}
	switch e.Action {
	case alloc.ActionOOM:
		out.DeviceFree = &e.Addr
	case alloc.ActionSnapshot:
	default:
		out.Address = &e.Addr
	}
	if life := r.lives.BlockOf(event); life >= 0 {
		category, _ := r.category(life)
		out.Alloc, out.Category = &life, &category
	}
	if stack := r.stackOf(event); stack > trace.EmptyStack {
		site := r.site(stack)
		out.Site = &site
		if frames {
			for _, f := range timeline.Frames(r.trace, stack) {
				out.Frames = append(out.Frames, newPlacedFrame(f))
			}
		}
	}
	return out
}

// stackOf is the call stack of an event; of an alloc the one that its block has,
// which may be known though the event has none.
func (r *pageRun) stackOf(event int) trace.StackID {
	if life := r.lives.BlockOf(event); life >= 0 && r.trace.Events.Action.At(event) == alloc.ActionAlloc {
		return r.lives.Stack(life)
	}
	return r.trace.Events.At(event).Stack
}

// site names a stack.
func (r *pageRun) site(id trace.StackID) string {
	s, ok := timeline.SiteOf(r.trace, id)
	if !ok {
		return noStackName
	}
	return s.String()
}

// find is api/find.
func (r *request) find() error {
	q, n := r.query, r.run.events()
	what := q.choice("what", "oom", "segment", "alloc")
	dir := 1
	after := -1
	if q.choice("dir", "1", "-1") == "-1" {
		dir, after = -1, n
	}
	after = q.integer("after", after, -1, n)
	if q.err != nil {
		return q.err
	}
	is := r.run.finder(what)
	for i := after + dir; i >= 0 && i < n; i += dir {
		if is(i) {
			return r.json(foundEvent{&i})
		}
	}
	return r.json(foundEvent{})
}

type foundEvent struct {
	Event *int `json:"event"`
}

// finder finds the events of a kind.
func (r *pageRun) finder(what string) func(event int) bool {
	action := func(event int) alloc.Action { return r.trace.Events.Action.At(event) }
	switch what {
	case "segment":
		return func(event int) bool {
			switch action(event) {
			case alloc.ActionSegmentAlloc, alloc.ActionSegmentFree, alloc.ActionSegmentMap, alloc.ActionSegmentUnmap:
				return true
			}
			return false
		}
	case "alloc":
		return func(event int) bool { return action(event) == alloc.ActionAlloc }
	}
	return func(event int) bool { return action(event) == alloc.ActionOOM }
}
