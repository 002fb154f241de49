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
			p.segments, err = b.looseSpans(recSegment, u.Open)
		case keyHostSegments:
			p.hasHost = true
			p.hostSegments, err = b.looseSpans(recSegment, u.Open)
		case keyDeviceTraces:
			p.traces, err = b.looseTraces(u.Open)
		case keyHostTraces:
			p.hasHost = true
			p.hostTraces, err = b.looseTraces(u.Open)
		case keyAnnotations:
			p.annotations, err = b.looseSpans(recAnnotation, u.Open)
		}
	} else if len(u.Open) > 0 && b.machine.KindOf(u.Open[0]) == pickle.List {
		p.segments, err = b.looseSpans(recSegment, u.Open)
		where = "in the list of segments"
	} else if len(u.Pairs) > 0 {
		where = "between two parts"
	}
	if err != nil {
		return err
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
func (b *builder) looseSpans(rec uint8, open []pickle.Value) ([]span, error) {
	var out []span
	for i, v := range open {
		if got, first, n, ok := v.AsRun(); ok {
			if got != rec {
				continue
			}
			if err := b.give(rec, n); err != nil {
				return nil, err
			}
			out = append(out, span{first, n})
			continue
		}
		if b.machine.KindOf(v) != pickle.List || i > 0 {
			break // inside the next thing
		}
		inner, err := b.looseSpans(rec, b.machine.Items(v))
		if err != nil {
			return nil, err
		}
		out = append(out, inner...)
	}
	return out, nil
}

// looseTraces does the same for a list of lists of events.
func (b *builder) looseTraces(open []pickle.Value) ([][]span, error) {
	var out [][]span
	add := func(v pickle.Value) (bool, error) {
		rec, first, n, ok := v.AsRun()
		switch {
		case ok && rec == recEvent:
			if len(out) == 0 {
				out = append(out, nil)
			}
			out[len(out)-1] = append(out[len(out)-1], span{first, n})
			return true, b.give(rec, n)
		case ok || b.machine.KindOf(v) != pickle.List:
			return false, nil // inside the next event
		}
		spans, err := b.looseSpans(recEvent, b.machine.Items(v))
		out = append(out, spans)
		return true, err
	}
	for i, v := range open {
		if i == 0 { // the outer list
			for _, item := range b.machine.Items(v) {
				if _, err := add(item); err != nil {
					return nil, err
				}
			}
		} else if ok, err := add(v); !ok || err != nil {
			return out, err
		}
	}
	return out, nil
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
