package snapshot

import (
	"io"

	"github.com/ashlar-mem/ashlar/trace"
)

// WritePickle writes a snapshot as PyTorch does through Python: a pickle of
// protocol 4 in which events share their stacks and stacks their frames.
func WritePickle(w io.Writer, f *File) error {
	e := newPickleEncoder(w)
	f.encode(e)
	return e.close()
}

// WriteJSON writes a snapshot as JSON of the same shape. Nothing is shared in
// JSON, so it may be much larger than the pickle.
func WriteJSON(w io.Writer, f *File) error {
	e := newJSONEncoder(w)
	f.encode(e)
	return e.close()
}

// tableEncoder is an encoder that wants to know when the tables change that
// stacks and frames are numbered in.
type tableEncoder interface {
	encoder
	use(*trace.Stacks)
	failed() bool
}

// encode shows the file to an encoder, with the keys in PyTorch's order.
func (f *File) encode(e tableEncoder) {
	e.beginDict()
	e.key("segments")
	f.encodeSegments(e, f.Traces)
	e.key("device_traces")
	f.encodeTraces(e)

	if first := f.first(); first != nil {
		w := &walker{encoder: e, strings: first.Strings, stacks: first.Stacks}
		if first.Settings.Known {
			e.key("allocator_settings")
			w.value(first.Settings.Fields)
		}
		e.key("external_annotations")
		e.beginList()
		for i := range first.Annotations {
			w.annotation(&first.Annotations[i])
		}
		e.endList()
	}
	if f.Host != nil {
		e.key("host_segments")
		f.encodeSegments(e, []*trace.Trace{f.Host})
		e.key("host_traces")
		e.beginList()
		f.encodeEvents(e, f.Host)
		e.endList()
	}
	(&walker{encoder: e}).fields(f.Extra)
	e.endDict()
}

// first returns a trace that has what all traces of a file share.
func (f *File) first() *trace.Trace {
	if len(f.Traces) > 0 {
		return f.Traces[0]
	}
	return f.Host
}

func (f *File) encodeSegments(e tableEncoder, traces []*trace.Trace) {
	e.beginList()
	for _, t := range traces {
		e.use(t.Stacks)
		w := &walker{encoder: e, strings: t.Strings, stacks: t.Stacks}
		for i := range t.Segments {
			w.segment(t.Device, &t.Segments[i])
		}
	}
	e.endList()
}

// encodeTraces writes device_traces: a list for each device number up to the
// last that has events.
func (f *File) encodeTraces(e tableEncoder) {
	lists := f.lists
	for _, t := range f.Traces {
		if t.Events.Len() > 0 {
			lists = max(lists, t.Device+1)
		}
	}
	e.beginList()
	next := 0
	for _, t := range f.Traces {
		if t.Device < next || t.Device >= lists {
			continue
		}
		for ; next < t.Device; next++ {
			e.beginList()
			e.endList()
		}
		f.encodeEvents(e, t)
		next++
	}
	for ; next < lists; next++ {
		e.beginList()
		e.endList()
	}
	e.endList()
}

func (f *File) encodeEvents(e tableEncoder, t *trace.Trace) {
	e.use(t.Stacks)
	w := &walker{encoder: e, strings: t.Strings, stacks: t.Stacks}
	e.beginList()
	for i := range t.Events.Len() {
		if e.failed() {
			break
		}
		w.event(&t.Events, i)
	}
	e.endList()
}
