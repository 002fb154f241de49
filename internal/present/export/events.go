package export

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// Events is what ashlar events --json prints: one JSON document, written event by
// event, each on a line. Errors of writing stay in the buffer.
type Events struct {
	out            *bufio.Writer
	line           *timeline.Timeline
	name           string
	why            string
	contradictions []string
	start          int64
	texts          map[trace.StringID][]byte
	stacks         [][]byte // by stack
	shown          int
	buf            []byte
}

// NewEvents begins a document about a device of a file; why it is that one may
// be empty. start is the time that events are counted from.
func NewEvents(out *bufio.Writer, l *timeline.Timeline, start int64, f *snapshot.File, why string) *Events {
	return &Events{
		out: out, line: l, name: f.Name, why: why, contradictions: answer.Contradictions(f), start: start,
		texts: map[trace.StringID][]byte{}, stacks: make([][]byte, l.Trace.Stacks.Len()),
	}
}

// Begin writes what comes before the events.
func (d *Events) Begin() {
	device, reason := "null", "null"
	if !d.line.Trace.Host {
		device = strconv.Itoa(d.line.Trace.Device)
	}
	if d.why != "" {
		reason = string(quoted(d.why))
	}
	contradictions := make([]string, len(d.contradictions))
	for i, c := range d.contradictions {
		contradictions[i] = string(quoted(c))
	}
	fmt.Fprintf(d.out, "{\"schema\": %d, \"file\": %s, \"device\": %s, \"host\": %t, \"device_reason\": %s, \"contradictions\": [%s], \"events\": [",
		answer.Schema, quoted(d.name), device, d.line.Trace.Host, reason, strings.Join(contradictions, ", "))
}

// Event writes the event at a cursor.
func (d *Events) Event(c *timeline.Cursor) {
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

// End writes what comes after them, with how many there are, and whether that was all.
func (d *Events) End(shown int, interrupted bool) {
	fmt.Fprintf(d.out, "\n], \"total_events\": %d, \"shown\": %d, \"interrupted\": %v}\n", d.line.Trace.Events.Len(), shown, interrupted)
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

func (d *Events) action(a trace.Action) []byte {
	if a < trace.FirstOther {
		return append(append([]byte{'"'}, a.String()...), '"')
	}
	return quoted(d.line.Trace.Events.ActionName(a))
}

// text returns a text of the trace as JSON, null if the file does not have it.
func (d *Events) text(id trace.StringID) []byte {
	if id == trace.NoString {
		return []byte("null")
	}
	if d.texts[id] == nil {
		d.texts[id] = quoted(d.line.Trace.Strings.Text(id))
	}
	return d.texts[id]
}

// stack returns the frames of a stack as JSON, null if the file has none.
func (d *Events) stack(id trace.StackID) []byte {
	if d.stacks[id] == nil {
		d.stacks[id] = []byte("null")
		if frames := timeline.Frames(d.line.Trace, id); frames != nil {
			out, _ := json.Marshal(frames) // texts and numbers only
			d.stacks[id] = answer.EscapeJSON(out)
		}
	}
	return d.stacks[id]
}

// quoted returns a text as JSON.
func quoted(s string) []byte {
	out, _ := json.Marshal(s) // a text always can be
	return answer.EscapeJSON(out)
}
