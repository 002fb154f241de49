package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

// span is a row of events.
type span struct{ first, n int }

// parts are the contents of a file before they are made into traces.
type parts struct {
	traces, hostTraces     [][]span // a list of spans for each device
	segments, hostSegments []span   // of segment rows
	annotations            []span
	settings               trace.Settings
	extra                  trace.Extra
	known                  bool // one of the keys that make a snapshot is there
	hasHost                bool
	annotated              bool // external_annotations is there, maybe empty
	complete               bool // the whole dictionary was read: what it lacks, the writer left out
}

// assemble makes the traces of a complete file.
func (b *builder) assemble(f *File, top pickle.Value) error {
	p := parts{settings: defaultSettings()}
	var err error
	switch b.machine.KindOf(top) {
	case pickle.Dict:
		err = b.fields(f, &p, b.machine.Items(top))
		p.complete = true
	case pickle.List:
		p.known = true
		p.segments, err = b.spans(recSegment, "the list", b.machine.Items(top))
	case pickle.Record:
		rec, _, _ := top.AsRecord()
		return &FormatError{f.Name, f.Format, recNames[rec]}
	default:
		return &FormatError{f.Name, f.Format, b.machine.KindOf(top).String()}
	}
	if err != nil {
		return err
	}
	// Recordings of the allocator list segments as well.
	if !p.known || p.traces == nil && p.extra.Has("ops") {
		return &FormatError{f.Name, f.Format, describeKeys(p.extra)}
	}
	return b.finish(f, &p)
}

// fields sorts the fields of the outermost dictionary.
func (b *builder) fields(f *File, p *parts, pairs []pickle.Value) error {
	last := map[pickle.Value]int{} // a key that comes twice
	for i := 0; i < len(pairs); i += 2 {
		last[pairs[i]] = i
	}
	for i := 0; i < len(pairs); i += 2 {
		key, v := pairs[i], pairs[i+1]
		if last[key] != i {
			continue
		}
		id, _ := key.AsString()
		var err error
		switch trace.StringID(id) {
		case keySegments:
			p.known = true
			p.segments, err = b.listSpans(recSegment, key, v)
		case keyDeviceTraces:
			p.known = true
			p.traces, err = b.traceSpans(key, v)
		case keyHostSegments:
			p.known, p.hasHost = true, true
			p.hostSegments, err = b.listSpans(recSegment, key, v)
		case keyHostTraces:
			p.known, p.hasHost = true, true
			p.hostTraces, err = b.traceSpans(key, v)
		case keyAnnotations:
			p.annotated = true
			p.annotations, err = b.listSpans(recAnnotation, key, v)
		case keySettings:
			err = b.settings(f, p, v)
		default:
			p.extra, err = b.extra(p.extra, key, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listSpans returns the rows that a list of known things holds.
func (b *builder) listSpans(rec uint8, key, v pickle.Value) ([]span, error) {
	if kind := b.machine.KindOf(v); kind != pickle.List {
		if v.IsNone() {
			return nil, nil
		}
		return nil, fmt.Errorf("%q is %v instead of a list", b.keyText(key), kind)
	}
	return b.spans(rec, b.keyText(key), b.machine.Items(v))
}

func (b *builder) spans(rec uint8, where string, items []pickle.Value) ([]span, error) {
	var out []span
	at := 0
	for _, item := range items {
		got, first, n, ok := item.AsRun()
		if !ok || got != rec {
			if b.problem != nil {
				return nil, b.problem
			}
			what := b.machine.KindOf(item).String()
			if ok {
				what = recNames[got]
			}
			return nil, fmt.Errorf("item %d of %s is %s instead of %s", at, where, what, recNames[rec])
		}
		if err := b.give(rec, n); err != nil {
			return nil, err
		}
		out = append(out, span{first, n})
		at += n
	}
	return out, nil
}

// give counts rows that lists name. No row is given away twice: a file could name
// the same one very often.
func (b *builder) give(rec uint8, n int) error {
	rows := b.events.Len()
	switch rec {
	case recSegment:
		rows = b.segments.n
	case recAnnotation:
		rows = b.annotations.n
	}
	if b.given[rec] += n; b.given[rec] > rows {
		return fmt.Errorf("%s is listed twice", recNames[rec])
	}
	return nil
}

// traceSpans returns the events of each list in a list of lists. One list of
// events will also do.
func (b *builder) traceSpans(key, v pickle.Value) ([][]span, error) {
	if b.machine.KindOf(v) == pickle.None {
		return nil, nil
	}
	if kind := b.machine.KindOf(v); kind != pickle.List {
		return nil, fmt.Errorf("%q is %v instead of a list", b.keyText(key), kind)
	}
	items := b.machine.Items(v)
	if len(items) > 0 {
		if rec, _, _, ok := items[0].AsRun(); ok && rec == recEvent {
			s, err := b.spans(recEvent, b.keyText(key), items)
			return [][]span{s}, err
		}
	}
	var out [][]span
	for i, item := range items {
		if kind := b.machine.KindOf(item); kind != pickle.List {
			return nil, fmt.Errorf("item %d of %q is %v instead of a list", i, b.keyText(key), kind)
		}
		s, err := b.spans(recEvent, fmt.Sprintf("%s[%d]", b.keyText(key), i), b.machine.Items(item))
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// finish makes the traces.
func (b *builder) finish(f *File, p *parts) error {
	if n := max(len(p.traces), len(p.hostTraces)); n > maxDevices {
		return fmt.Errorf("traces of %d devices: %s", n, damaged)
	}
	f.Extra = p.extra
	f.lists = len(p.traces)
	annotations := gather(&b.annotations, p.annotations)
	platform := b.platform(p)
	writer := writerOn(platform, b.writer(p))
	newTrace := func(device int) *trace.Trace {
		return &trace.Trace{
			Device: device, Strings: b.strings, Stacks: b.stacks, Writer: writer, Platform: platform,
			Annotations: annotations, Settings: p.settings, Extra: p.extra,
		}
	}
	byDevice := map[int]*trace.Trace{}
	get := func(device int) *trace.Trace {
		if byDevice[device] == nil {
			byDevice[device] = newTrace(device)
		}
		return byDevice[device]
	}
	for device := range p.traces {
		get(device)
	}
	count := map[int]int{}
	b.eachSegment(p.segments, func(row *segmentRow) { count[row.device]++ })
	for device, n := range count {
		get(device).Segments = make([]trace.Segment, 0, n)
	}
	b.eachSegment(p.segments, func(row *segmentRow) {
		t := get(row.device)
		t.Segments = append(t.Segments, row.Segment)
	})
	if p.hasHost {
		f.Host = newTrace(0)
		f.Host.Host = true
		b.eachSegment(p.hostSegments, func(row *segmentRow) { f.Host.Segments = append(f.Host.Segments, row.Segment) })
		sortSegments(f.Host)
	}
	b.segments = rows[segmentRow]{} // copied
	for _, t := range byDevice {
		sortSegments(t)
		f.Traces = append(f.Traces, t)
	}
	slices.SortFunc(f.Traces, func(a, b *trace.Trace) int { return cmp.Compare(a.Device, b.Device) })
	if p.hasHost {
		b.takeEvents(f.Host, slices.Concat(p.hostTraces...))
	}
	for device := len(p.traces) - 1; device >= 0; device-- {
		b.takeEvents(byDevice[device], p.traces[device])
	}
	f.findHints()
	for _, t := range f.Traces {
		f.checkAddresses(t)
	}
	all := f.Traces
	if f.Host != nil {
		all = append(slices.Clip(all), f.Host)
	}
	f.Contradictions = contradicting(all)
	for _, c := range f.Contradictions {
		f.warn("the file contradicts itself: %s", c)
	}
	return nil
}

// eachSegment calls f for each row of some spans.
func (b *builder) eachSegment(spans []span, f func(*segmentRow)) {
	for _, s := range spans {
		for i := range s.n {
			f(b.segments.row(s.first + i))
		}
	}
}

func total(spans []span) int {
	n := 0
	for _, s := range spans {
		n += s.n
	}
	return n
}

func gather[T any](r *rows[T], spans []span) []T {
	if len(spans) == 0 {
		return nil
	}
	out := make([]T, 0, total(spans))
	for _, s := range spans {
		out = append(out, r.slice(s.first, s.n)...)
	}
	return out
}

func sortSegments(t *trace.Trace) {
	slices.SortStableFunc(t.Segments, func(a, b trace.Segment) int { return cmp.Compare(a.Address, b.Address) })
}

// takeEvents moves the events of a device into its trace. There is one table
// for all devices while the file is read; the last list is at its end.
func (b *builder) takeEvents(t *trace.Trace, spans []span) {
	next := 0
	if len(spans) > 0 {
		next = spans[0].first
	}
	for _, s := range spans {
		if s.first != next {
			next = -1
			break
		}
		next += s.n
	}
	switch {
	case len(spans) == 0:
	case next == b.events.Len(): // the usual case
		t.Events = b.events.Cut(spans[0].first)
	default:
		for _, s := range spans {
			for i := range s.n {
				t.Events.Copy(&b.events, s.first+i)
			}
		}
	}
}
