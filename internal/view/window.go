package view

import (
	"math"

	"github.com/ashlar-mem/ashlar/trace"
)

// window is a piece of the x axis in columns of equal width. Event e takes the
// place from e to e+1; by time an event begins at its time since the first one.
// A column shows the state at its right edge: after the last event that begins
// before it.
type window struct {
	x0, x1 float64
	time   bool
	ends   []int32 // the event after which a column's state is; -1 before the first
	before int32   // the same for the left edge of the first column
}

// The largest pictures.
const (
	maxWidth  = 8192
	maxHeight = 8192
)

// extent is where the x axis ends.
func (r *pageRun) extent(time bool) float64 {
	if time {
		return float64(r.clock.Last-r.clock.First) + 1
	}
	return float64(max(r.events(), 1))
}

// window reads x, from and to.
func (r *request) window(columns int) *window {
	w := &window{time: r.query.choice("x", "event", "time") == "time"}
	if w.time && r.run.clock.First == trace.NoTime {
		r.query.bad("the events of this file have no times: take x=event")
		w.time = false
	}
	end := r.run.extent(w.time)
	w.x0, w.x1 = max(r.query.real("from", 0), 0), min(r.query.real("to", end), end)
	if !(w.x0 < w.x1) {
		r.query.bad("from %v to %v is no piece of the run, which goes from 0 to %v", r.query.values.Get("from"), r.query.values.Get("to"), end)
		w.x0, w.x1 = 0, end
	}
	r.run.cut(w, columns)
	return w
}

// cut makes the columns.
func (r *pageRun) cut(w *window, columns int) {
	w.before = r.lastBefore(w.x0, w.time)
	w.ends = make([]int32, columns)
	for c := range w.ends {
		w.ends[c] = r.lastBefore(w.edge(c+1), w.time)
	}
}

// edge is the left edge of a column, or the right one of the column before.
func (w *window) edge(column int) float64 {
	if column == len(w.ends) {
		return w.x1
	}
	return w.x0 + (w.x1-w.x0)*float64(column)/float64(len(w.ends))
}

// lastBefore is the last event that begins before a place on the x axis.
func (r *pageRun) lastBefore(x float64, time bool) int32 {
	x = math.Ceil(x)
	if time {
		return int32(r.clock.Before(r.clock.First+int64(x)) - 1)
	}
	return int32(min(max(int(x), 0), r.events()) - 1)
}

// columnOf finds the columns of events: of those after the first column's state,
// the first column whose state has the event.
type columnOf struct {
	first int32 // event of table[0]
	table []uint16
	n     int32 // columns
}

func (w *window) columnOf(table []uint16) columnOf {
	last := len(w.ends) - 1
	c := columnOf{first: w.ends[0] + 1, n: int32(len(w.ends))}
	if n := int(w.ends[last] - w.ends[0]); cap(table) < n {
		c.table = make([]uint16, n)
	} else {
		c.table = table[:n]
	}
	at := 0
	for i := 1; i <= last; i++ {
		for end := int(w.ends[i] - w.ends[0]); at < end; at++ {
			c.table[at] = uint16(i)
		}
	}
	return c
}

// column returns the column of an event; the number of columns if it is behind them.
func (c *columnOf) column(event int32) int32 {
	i := event - c.first
	switch {
	case i < 0:
		return 0
	case int(i) >= len(c.table):
		return c.n
	}
	return int32(c.table[i])
}

// windows is one piece of the run on both axes; Time is nil if the events have no
// times.
type windows struct {
	// The piece reaches from the moment after one event to the moment after
	// another; -1 is before the first.
	After int     `json:"after"`
	Until int     `json:"until"`
	Event extent  `json:"event"`
	Time  *extent `json:"time"`
}

// extent is a piece of an axis.
type extent struct {
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// windows is api/window: the piece from x=event or x=time on the other axis. It
// has the same events there.
func (r *request) windows() error {
	w := r.window(1)
	if r.query.err != nil {
		return r.query.err
	}
	return r.json(r.run.windows(w))
}

func (r *pageRun) windows(w *window) *windows {
	out := &windows{After: int(w.before), Until: int(w.ends[0]), Event: extent{w.x0, w.x1}}
	if w.time {
		out.Event = extent{float64(w.before + 1), float64(w.ends[0] + 1)}
		out.Time = &extent{w.x0, w.x1}
		return out
	}
	if r.clock.First == trace.NoTime || r.events() == 0 {
		return out
	}
	first, last := min(int(w.x0), r.events()-1), int(w.ends[0])
	out.Time = &extent{float64(r.clock.At(first) - r.clock.First), float64(r.clock.At(max(first, last))-r.clock.First) + 1}
	return out
}
