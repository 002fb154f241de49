package text

import (
	"bufio"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// Events writes a table of events, line by line. Errors of writing stay in the
// buffer.
type Events struct {
	out    *bufio.Writer
	trace  *trace.Trace
	start  int64
	index  int // widths
	stream int
	pools  bool
	hidden map[string]bool // columns that a narrow terminal has no room for
	where  int             // width of the last column
	sites  []string        // by stack
	line   []byte
}

// NewEvents begins a table. start is the time that events are counted from. On a
// terminal lines are as wide as it is; elsewhere nothing is left out.
func NewEvents(out *bufio.Writer, l *timeline.Timeline, start int64, style Style) *Events {
	t := l.Trace
	e := &Events{out: out, trace: t, start: start, stream: len("stream"), sites: make([]string, t.Stacks.Len())}
	e.index = max(len("event"), len(strconv.Itoa(max(0, t.Events.Len()-1))))
	for _, s := range t.Events.Streams {
		e.stream = max(e.stream, len(Stream(s)))
	}
	e.pools = len(t.Events.Pools) > 1
	for i := range t.Segments {
		e.pools = e.pools || t.Segments[i].Pool != alloc.PoolID{}
	}
	e.fit(style)
	return e
}

// fit leaves out columns until the last one has room for a call site.
func (e *Events) fit(style Style) {
	const enough = 20
	e.hidden, e.where = map[string]bool{}, 1<<30
	if style.Width <= 0 {
		return
	}
	e.where = style.columns() - (e.index + 1 + timeWidth + 2 + actionWidth + 1 + sizeWidth + 2 + addrWidth + 1 + e.stream + 1 + sizeWidth + 1 + sizeWidth + 2)
	if e.pools {
		e.where -= 1 + poolWidth
	}
	for _, c := range []struct {
		name string
		wide int
	}{{"stream", e.stream}, {"address", addrWidth}, {"requested", sizeWidth}, {"ms", timeWidth}} {
		if e.where >= enough {
			return
		}
		e.hidden[c.name] = true
		e.where += 1 + c.wide
	}
}

// column adds a column that may be left out.
func (e *Events) column(b []byte, name, cell string, wide int, add func([]byte, string, int) []byte) []byte {
	if e.hidden[name] {
		return b
	}
	return add(append(b, ' '), cell, wide)
}

const (
	actionWidth = 14
	sizeWidth   = 11
	timeWidth   = 11
	addrWidth   = 14
	poolWidth   = 5
)

// Begin writes the head.
func (e *Events) Begin() {
	e.row("event", "ms", "action", "size", "address", "stream", "pool", "reserved", "requested", "where")
}

// Event writes the event at a cursor.
func (e *Events) Event(c *timeline.Cursor) {
	ev := &c.Event
	time, pool := "-", "-"
	if ev.Time != trace.NoTime {
		time = strconv.FormatFloat(float64(ev.Time-e.start)/1000, 'f', 3, 64)
	}
	if e.pools {
		if id, ok := c.Pool(); ok {
			pool = strconv.FormatUint(id.First, 10) + "," + strconv.FormatUint(id.Second, 10)
		}
	}
	e.row(strconv.Itoa(c.Index), time, Clean(e.trace.Events.ActionName(ev.Action)), units.Size(ev.Size), address(ev), Stream(ev.Stream), pool,
		units.Size(c.Totals.Reserved), units.Size(c.Totals.Requested), e.site(ev))
}

// row writes a line of the table.
func (e *Events) row(index, time, action, size, addr, stream, pool, reserved, requested, where string) {
	b := right(e.line[:0], index, e.index)
	b = e.column(b, "ms", time, timeWidth, right)
	b = left(append(b, ' ', ' '), action, actionWidth)
	b = right(append(b, ' '), size, sizeWidth)
	b = append(b, ' ')
	b = e.column(b, "address", addr, addrWidth, left)
	b = e.column(b, "stream", stream, e.stream, left)
	if e.pools {
		b = left(append(b, ' '), pool, poolWidth)
	}
	b = right(append(b, ' '), reserved, sizeWidth)
	b = e.column(b, "requested", requested, sizeWidth, right)
	b = append(b, ' ', ' ')
	b = append(b, cut(where, e.where)...)
	b = append(b, '\n')
	e.line = b
	e.out.Write(b) // an error is kept by the buffer
}

// End has nothing to add.
func (e *Events) End(int, bool) {}

// address returns where the event's memory is; an oom has none, but tells what
// the driver had free.
func address(e *trace.Event) string {
	switch e.Action {
	case alloc.ActionOOM, alloc.ActionSnapshot:
		return "-"
	}
	return "0x" + strconv.FormatUint(e.Addr, 16)
}

// site returns what the last column says.
func (e *Events) site(ev *trace.Event) string {
	site := "-"
	if ev.Stack > trace.EmptyStack {
		if e.sites[ev.Stack] == "" {
			s, _ := timeline.SiteOf(e.trace, ev.Stack)
			e.sites[ev.Stack] = Clean(s.Fit(e.where))
		}
		site = e.sites[ev.Stack]
	}
	if ev.Action == alloc.ActionOOM {
		site = "driver has " + units.Size(ev.Addr) + " free; " + site
	}
	return site
}

func right(b []byte, s string, width int) []byte {
	for range width - len(s) {
		b = append(b, ' ')
	}
	return append(b, s...)
}

func left(b []byte, s string, width int) []byte {
	b = append(b, s...)
	for range width - len(s) {
		b = append(b, ' ')
	}
	return b
}
