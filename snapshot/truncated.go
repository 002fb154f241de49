package snapshot

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

// salvage makes the traces of a file that ends early.
func (b *builder) salvage(f *File, end *pickle.TruncatedError) error {
	u, err := b.machine.Unfinished()
	if err != nil {
		return err
	}
	p := parts{settings: defaultSettings()}
	if err := b.fields(f, &p, u.Pairs); err != nil {
		return err
	}
	where := "before the first part of the snapshot"
	if id, ok := u.Key.AsString(); ok {
		where = "in " + b.Text(id)
		switch trace.StringID(id) {
		case keySegments:
			p.segments = b.looseSpans(recSegment, u.Open)
		case keyHostSegments:
			p.hasHost = true
			p.hostSegments = b.looseSpans(recSegment, u.Open)
		case keyDeviceTraces:
			p.traces = b.looseTraces(u.Open)
		case keyHostTraces:
			p.hasHost = true
			p.hostTraces = b.looseTraces(u.Open)
		case keyAnnotations:
			p.annotations = b.looseSpans(recAnnotation, u.Open)
		}
	} else if len(u.Open) > 0 && b.machine.KindOf(u.Open[0]) == pickle.List {
		p.segments = b.looseSpans(recSegment, u.Open)
		where = "in the list of segments"
	} else if len(u.Pairs) > 0 {
		where = "between two parts"
	}
	if err := b.finish(f, &p); err != nil {
		return err
	}
	if id, ok := u.Key.AsString(); ok && trace.StringID(id) == keyDeviceTraces {
		for _, t := range f.Traces {
			t.Partial = t.Device >= len(p.traces)-1 // traces stand in the order of devices
		}
	}
	events, segments := f.content()
	f.Truncated = &Truncation{ReadBytes: end.Offset, Where: fmt.Sprintf("%s, behind %d segments and %d events", where, segments, events)}
	return nil
}

// looseSpans returns the rows of one table among values on the stack: those in
// the list that was being read and those not yet in it.
func (b *builder) looseSpans(rec uint8, open []pickle.Value) []span {
	var out []span
	for i, v := range open {
		if got, first, n, ok := v.AsRun(); ok {
			if got == rec {
				out = append(out, span{first, n})
			}
			continue
		}
		if b.machine.KindOf(v) != pickle.List || i > 0 {
			break // inside the next thing
		}
		out = append(out, b.looseSpans(rec, b.machine.Items(v))...)
	}
	return out
}

// looseTraces does the same for a list of lists of events.
func (b *builder) looseTraces(open []pickle.Value) [][]span {
	var out [][]span
	add := func(v pickle.Value) bool {
		if rec, first, n, ok := v.AsRun(); ok {
			if rec != recEvent {
				return false
			}
			if len(out) == 0 {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], span{first, n})
			return true
		}
		if b.machine.KindOf(v) != pickle.List {
			return false // inside the next event
		}
		out = append(out, b.looseSpans(recEvent, b.machine.Items(v)))
		return true
	}
	for i, v := range open {
		if i == 0 { // the outer list
			for _, item := range b.machine.Items(v) {
				add(item)
			}
		} else if !add(v) {
			break
		}
	}
	return out
}

// content counts what a file has.
func (f *File) content() (events, segments int) {
	for _, t := range f.Traces {
		events += t.Events.Len()
		segments += len(t.Segments)
	}
	if f.Host != nil {
		events += f.Host.Events.Len()
		segments += len(f.Host.Segments)
	}
	return events, segments
}
