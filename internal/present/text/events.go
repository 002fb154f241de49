package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// eventTable prints events as lines of text.
type eventTable struct {
	out    *bufio.Writer
	trace  *trace.Trace
	start  int64
	index  int // widths
	stream int
	pools  bool
	sites  []string // by stack
	line   []byte
}

func newEventTable(out *bufio.Writer, l *timeline.Timeline) *eventTable {
	t := l.Trace
	e := &eventTable{out: out, trace: t, start: startTime(t), stream: len("stream"), sites: make([]string, t.Stacks.Len())}
	e.index = max(len("event"), len(strconv.Itoa(max(0, t.Events.Len()-1))))
	for _, s := range t.Events.Streams {
		e.stream = max(e.stream, len(text.Stream(s)))
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

func (e *eventTable) begin() {
	pool := ""
	if e.pools {
		pool = fmt.Sprintf(" %-*s", poolWidth, "pool")
	}
	fmt.Fprintf(e.out, "%*s %*s  %-*s %*s  %-*s %-*s%s %*s %*s  where\n", e.index, "event", timeWidth, "ms", actionWidth, "action",
		sizeWidth, "size", addrWidth, "address", e.stream, "stream", pool, sizeWidth, "reserved", sizeWidth, "live")
}

func (e *eventTable) event(c *timeline.Cursor) {
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
	b = left(b, text.Clean(e.trace.Events.ActionName(ev.Action)), actionWidth)
	b = append(b, ' ')
	b = right(b, units.Size(ev.Size), sizeWidth)
	b = append(b, ' ', ' ')
	b = left(b, address(ev), addrWidth)
	b = append(b, ' ')
	b = left(b, text.Stream(ev.Stream), e.stream)
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

func (e *eventTable) end(int) {}

// address is where the event's memory is; an oom has none, but tells what the
// driver had free.
func address(e *trace.Event) string {
	switch e.Action {
	case alloc.ActionOOM, alloc.ActionSnapshot:
		return "-"
	}
	return "0x" + strconv.FormatUint(e.Addr, 16)
}

// site returns what the last column says.
func (e *eventTable) site(ev *trace.Event) string {
	site := "-"
	if ev.Stack > trace.EmptyStack {
		if e.sites[ev.Stack] == "" {
			s, _ := timeline.SiteOf(e.trace, ev.Stack)
			e.sites[ev.Stack] = text.Clean(s.String())
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

// eventDocument prints events as one JSON document, an event on a line.
type eventDocument struct {
	out    *bufio.Writer
	line   *timeline.Timeline
	name   string
	why    string
	start  int64
	texts  map[trace.StringID][]byte
	stacks [][]byte // by stack
	shown  int
	buf    []byte
}

func newEventDocument(out *bufio.Writer, l *timeline.Timeline, name, why string) *eventDocument {
	return &eventDocument{
		out: out, line: l, name: name, why: why, start: startTime(l.Trace),
		texts: map[trace.StringID][]byte{}, stacks: make([][]byte, l.Trace.Stacks.Len()),
	}
}

func (d *eventDocument) begin() {
	device, reason := "null", "null"
	if !d.line.Trace.Host {
		device = strconv.Itoa(d.line.Trace.Device)
	}
	if d.why != "" {
		reason = string(quoted(d.why))
	}
	fmt.Fprintf(d.out, "{\"file\": %s, \"device\": %s, \"host\": %t, \"device_reason\": %s, \"events\": [", quoted(d.name), device, d.line.Trace.Host, reason)
}

func (d *eventDocument) event(c *timeline.Cursor) {
	b := d.buf[:0]
	e := &c.Event
	if d.shown > 0 {
		b = append(b, ',')
	}
	d.shown++
	b = append(b, "\n{\"index\": "...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	if e.Time == trace.NoTime {
		b = append(b, `, "time_us": null, "since_start_us": null`...)
	} else {
		b = append(b, `, "time_us": `...)
		b = strconv.AppendInt(b, e.Time, 10)
		b = append(b, `, "since_start_us": `...)
		b = strconv.AppendInt(b, e.Time-d.start, 10)
	}
	b = append(b, `, "action": `...)
	b = append(b, d.action(e.Action)...)
	b = number(b, "size_bytes", e.Size)
	hasAddr := e.Action != alloc.ActionOOM && e.Action != alloc.ActionSnapshot
	b = numberOr(b, "addr", e.Addr, hasAddr)
	b = numberOr(b, "device_free_bytes", e.Addr, e.Action == alloc.ActionOOM)
	b = number(b, "stream", e.Stream)
	b = append(b, `, "pool": `...)
	if id, ok := c.Pool(); ok {
		b = append(b, '[')
		b = strconv.AppendUint(b, id.First, 10)
		b = append(b, ", "...)
		b = strconv.AppendUint(b, id.Second, 10)
		b = append(b, ']')
	} else {
		b = append(b, "null"...)
	}
	b = number(b, "reserved_bytes", c.Totals.Reserved)
	b = number(b, "live_bytes", c.Totals.Requested)
	b = number(b, "pending_bytes", c.Totals.Pending)
	b = number(b, "active_blocks", uint64(c.Totals.Blocks))
	b = append(b, `, "user_metadata": `...)
	b = append(b, d.text(e.Meta)...)
	b = append(b, `, "compile_context": `...)
	b = append(b, d.text(e.Compile)...)
	b = append(b, `, "frames": `...)
	b = append(b, d.stack(e.Stack)...)
	b = append(b, '}')
	d.buf = b
	d.out.Write(b) // an error is kept by the buffer
}

func (d *eventDocument) end(shown int) {
	fmt.Fprintf(d.out, "\n], \"total_events\": %d, \"shown\": %d}\n", d.line.Trace.Events.Len(), shown)
}

func number(b []byte, name string, n uint64) []byte {
	b = append(b, `, "`...)
	b = append(b, name...)
	b = append(b, `": `...)
	return strconv.AppendUint(b, n, 10)
}

func numberOr(b []byte, name string, n uint64, known bool) []byte {
	if known {
		return number(b, name, n)
	}
	b = append(b, `, "`...)
	b = append(b, name...)
	return append(b, `": null`...)
}

func (d *eventDocument) action(a trace.Action) []byte {
	if a < trace.FirstOther {
		return append(append([]byte{'"'}, a.String()...), '"')
	}
	return quoted(d.line.Trace.Events.ActionName(a))
}

// text returns a text of the trace as JSON, null if the file does not have it.
func (d *eventDocument) text(id trace.StringID) []byte {
	if id == trace.NoString {
		return []byte("null")
	}
	if d.texts[id] == nil {
		d.texts[id] = quoted(d.line.Trace.Strings.Text(id))
	}
	return d.texts[id]
}

// stack returns the frames of a stack as JSON, null if the file has none.
func (d *eventDocument) stack(id trace.StackID) []byte {
	if d.stacks[id] == nil {
		d.stacks[id] = []byte("null")
		if frames := timeline.Frames(d.line.Trace, id); frames != nil {
			d.stacks[id], _ = json.Marshal(frames) // texts and numbers only
		}
	}
	return d.stacks[id]
}

// quoted is a text as JSON.
func quoted(s string) []byte {
	out, _ := json.Marshal(s) // a text always can be
	return out
}
