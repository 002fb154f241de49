package snapshot

import (
	"io"
	"iter"

	"github.com/ashlar-mem/ashlar/trace"
)

// Stream is a snapshot that is written as it is made, because it may be larger
// than memory. All of it refers to one table of texts and one of stacks.
type Stream struct {
	Strings     *trace.Strings
	Stacks      *trace.Stacks
	Segments    iter.Seq2[int, *trace.Segment] // with their devices, in the order of the file
	Traces      []iter.Seq[StreamEvent]        // one for each device
	Settings    trace.Settings
	Annotations iter.Seq[trace.Annotation]
}

// StreamEvent is an event of a Stream. PyTorch captures a stack for each call
// of the allocator; the events of one call share it.
type StreamEvent struct {
	trace.Event
	SameCall bool // as the event before
}

// WriteStream writes a snapshot as Python's pickle module does for PyTorch:
// every dictionary and list gets a memo entry, frames are shared by all stacks
// that have them, and each call has a stack of its own even if another equals
// it. The parts are asked for in the order of the file: segments, traces,
// annotations. It stops early if writing fails.
func WriteStream(w io.Writer, s *Stream) error {
	e := &streamEncoder{pickleEncoder: newPickleEncoder(w)}
	e.use(s.Stacks)
	walk := &walker{encoder: e, strings: s.Strings, stacks: s.Stacks}

	e.beginDict()
	e.key("segments")
	e.beginList()
	for device, segment := range s.Segments {
		walk.segment(device, segment)
		if e.failed() {
			return e.err
		}
	}
	e.endList()
	e.key("device_traces")
	e.beginList()
	for _, events := range s.Traces {
		e.beginList()
		for ev := range events {
			e.event(walk, &ev)
			if e.failed() {
				return e.err
			}
		}
		e.endList()
	}
	e.endList()
	if s.Settings.Known {
		e.key("allocator_settings")
		walk.value(s.Settings.Fields)
	}
	e.key("external_annotations")
	e.beginList()
	for a := range s.Annotations {
		walk.annotation(&a)
		if e.failed() {
			return e.err
		}
	}
	e.endList()
	e.endDict()
	return e.close()
}

// streamEncoder differs from pickleEncoder in what gets memo entries.
type streamEncoder struct {
	*pickleEncoder
	again bool   // the next stack is the last one
	last  uint32 // its memo entry
}

func (e *streamEncoder) beginDict() {
	e.item()
	e.op('}', 0x94, '(')
	e.memo++
	e.open = append(e.open, openPickle{})
}

func (e *streamEncoder) beginList() {
	e.item()
	e.op(']', 0x94, '(')
	e.memo++
	e.open = append(e.open, openPickle{list: true})
}

// beginShared always shares frames, and stacks only if that is set.
func (e *streamEncoder) beginShared(s shared) bool {
	if s.rec != recStack || trace.StackID(s.id) == trace.EmptyStack {
		return e.pickleEncoder.beginShared(s)
	}
	if e.again {
		e.item()
		e.get(e.last)
		return false
	}
	e.last = e.memo
	e.beginList()
	return true
}

// event is walker.event for an event that is in no table.
func (e *streamEncoder) event(w *walker, ev *StreamEvent) {
	e.beginDict()
	w.eventFields(ev.Action.String(), &ev.Event)
	e.again = ev.SameCall
	w.frames(ev.Stack)
	e.again = false
	e.endDict()
}
