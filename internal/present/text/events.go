package text

import (
	"bufio"
	"fmt"
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
	sites  []string // by stack
	line   []byte
}

// NewEvents begins a table. start is the time that events are counted from.
func NewEvents(out *bufio.Writer, l *timeline.Timeline, start int64) *Events {
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
	return e
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
	pool := ""
	if e.pools {
		pool = fmt.Sprintf(" %-*s", poolWidth, "pool")
	}
	fmt.Fprintf(e.out, "%*s %*s  %-*s %*s  %-*s %-*s%s %*s %*s  where\n", e.index, "event", timeWidth, "ms", actionWidth, "action",
		sizeWidth, "size", addrWidth, "address", e.stream, "stream", pool, sizeWidth, "reserved", sizeWidth, "requested")
}

// Event writes the event at a cursor.
func (e *Events) Event(c *timeline.Cursor) {
	b := e.line[:0]
	ev := &c.Event
	b = right(b, strconv.Itoa(c.Index), e.index)
	b = append(b, ' ')
	if ev.Time == trace.NoTime {
		b = right(b, "-", timeWidth)
	} else {
		b = right(b, strconv.FormatFloat(float64(ev.Time-e.start)/1000, 'f', 3, 64), timeWidth)
	}
	b = append(b, ' ', ' ')
	b = left(b, Clean(e.trace.Events.ActionName(ev.Action)), actionWidth)
	b = append(b, ' ')
	b = right(b, units.Size(ev.Size), sizeWidth)
	b = append(b, ' ', ' ')
	b = left(b, address(ev), addrWidth)
	b = append(b, ' ')
	b = left(b, Stream(ev.Stream), e.stream)
	if e.pools {
		b = append(b, ' ')
		pool := "-"
		if id, ok := c.Pool(); ok {
			pool = strconv.FormatUint(id.First, 10) + "," + strconv.FormatUint(id.Second, 10)
		}
		b = left(b, pool, poolWidth)
	}
	b = append(b, ' ')
	b = right(b, units.Size(c.Totals.Reserved), sizeWidth)
	b = append(b, ' ')
	b = right(b, units.Size(c.Totals.Requested), sizeWidth)
	b = append(b, ' ', ' ')
	b = append(b, e.site(ev)...)
	b = append(b, '\n')
	e.line = b
	e.out.Write(b) // an error is kept by the buffer
}

// End has nothing to add.
func (e *Events) End(int) {}

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
			e.sites[ev.Stack] = Clean(s.String())
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
