package diff

import (
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Table keeps the call stacks of several files under one numbering, so that
// equal stacks have equal numbers and the files themselves can be forgotten.
type Table struct {
	trace *trace.Trace // texts and stacks only

	sources  int              // traces that sides were taken of
	variants map[int][]*calls // by position: see sequence
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		trace:    &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()},
		variants: map[int][]*calls{},
	}
}

// frames returns the frames of a stack for the answer; nil if it has none.
func (x *Table) frames(id trace.StackID) []timeline.Frame { return timeline.Frames(x.trace, id) }

// importer brings the stacks of one trace into a table.
type importer struct {
	to     *Table
	from   *trace.Trace
	texts  map[trace.StringID]trace.StringID
	frames map[trace.FrameID]trace.FrameID
	stacks map[trace.StackID]trace.StackID
	buf    []trace.FrameID
}

func (x *Table) importer(t *trace.Trace) *importer {
	return &importer{
		to: x, from: t,
		texts:  map[trace.StringID]trace.StringID{},
		frames: map[trace.FrameID]trace.FrameID{},
		stacks: map[trace.StackID]trace.StackID{},
	}
}

// stack returns the number of a stack in the table.
func (m *importer) stack(id trace.StackID) trace.StackID {
	if id <= trace.EmptyStack {
		return trace.NoStack // nobody knows either way
	}
	if got, ok := m.stacks[id]; ok {
		return got
	}
	m.buf = m.buf[:0]
	for _, f := range m.from.Stacks.Frames(id) {
		m.buf = append(m.buf, m.frame(f))
	}
	got := m.to.trace.Stacks.Add(m.buf)
	m.stacks[id] = got
	return got
}

func (m *importer) frame(id trace.FrameID) trace.FrameID {
	if got, ok := m.frames[id]; ok {
		return got
	}
	f := m.from.Stacks.Frame(id)
	got := m.to.trace.Stacks.AddFrame(trace.Frame{Name: m.text(f.Name), File: m.text(f.File), Line: f.Line})
	m.frames[id] = got
	return got
}

func (m *importer) text(id trace.StringID) trace.StringID {
	if id == trace.NoString {
		return id
	}
	got, ok := m.texts[id]
	if !ok {
		got = m.to.trace.Strings.Add(m.from.Strings.Text(id))
		m.texts[id] = got
	}
	return got
}

// allFrames imports every frame of the file, also those of stacks that are in
// no side: they show how far lines moved.
func (m *importer) allFrames() []trace.FrameID {
	out := make([]trace.FrameID, m.from.Stacks.NumFrames())
	for i := range out {
		out[i] = m.frame(trace.FrameID(i))
	}
	return out
}
