package snapshot

import (
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// SetWriter sets the release of PyTorch that wrote the file, for one who knows it
// better than the file tells.
func (f *File) SetWriter(v pytorch.Version) {
	for _, t := range f.Traces {
		t.Writer = pytorch.Exactly(v)
	}
}

// sign is something that files have from one version of PyTorch on.
type sign struct {
	since   pytorch.Version
	present bool
	visible bool // the file has the place where it would be
}

// writer deduces which versions of PyTorch may have written a file. Our recorder
// notes the version; other files show it by the fields that they have and lack.
// See docs/versions.md for the table.
func (b *builder) writer(p *parts) pytorch.Range {
	if v := noted(p.extra); v >= pytorch.Oldest {
		return pytorch.Exactly(v)
	}
	signs := []sign{
		{pytorch.Of(2, 3), p.settings.Known, p.complete},
		{pytorch.Of(2, 5), p.annotated, p.complete},
		{pytorch.Of(2, 9), p.settings.Fields.Has("graph_capture_record_stream_reuse"), p.settings.Known},
		{pytorch.Newest, p.extra.Has("trace_alloc_max_entries") || p.extra.Has("trace_alloc_overflowed"), false},
	}
	for _, spans := range p.traces {
		if total(spans) > 0 {
			signs = append(signs, b.eventSigns(spans[0].first)...)
			break
		}
	}
	if total(p.segments) > 0 {
		seg := &b.segments.slice(p.segments[0].first, 1)[0]
		signs = append(signs, sign{pytorch.Of(2, 1), seg.HasPool, true})
	}
	return knowing(narrowed(signs), p.settings.Conf)
}

// knowing narrows a range to the versions that know every key of a settings text:
// others refuse it when they start. A key that the range leaves no room for was
// refused, and tells nothing.
func knowing(r pytorch.Range, conf string) pytorch.Range {
	s, others, _ := settings.ParseKnown(conf)
	for _, key := range append(s.Keys(), others...) {
		if v := settings.Since(key); r.Has(v) {
			r.First = max(r.First, v)
		}
	}
	return r
}

// noted returns the version that our recorder or our engine wrote into a file, 0 if
// neither did.
func noted(fields trace.Extra) pytorch.Version {
	text, ok := fields.Get(engineKey).(string)
	if facts, recorded := fields.Get(recorder.Key).(trace.Extra); recorded && !ok {
		text, _ = facts.Get("torch").(string)
	}
	v, _ := pytorch.Parse(text)
	return v
}

// findHints looks for allocations at a given address, of which earlier versions have
// none.
func (f *File) findHints() {
	for _, t := range f.Traces {
		for i := 0; t.Writer.Since(pytorch.Of(2, 12)) && i < t.Events.Len(); i++ {
			if t.Hinted(i) {
				f.SetWriter(pytorch.Newest)
				return
			}
		}
	}
}

// eventSigns returns what one event shows: all events of a file have the same
// fields.
func (b *builder) eventSigns(row int) []sign {
	e := b.events.At(row)
	return []sign{
		{pytorch.Of(2, 2), e.Time != trace.NoTime, true},
		{pytorch.Of(2, 8), e.Compile != trace.NoString, true},
		{pytorch.Of(2, 10), e.Meta != trace.NoString, true},
		{pytorch.Of(2, 12), e.Pool != trace.NoPool, true},
	}
}

// narrowed returns the versions that agree with the signs. What is present
// counts more than what is missing; nothing at all tells nothing.
func narrowed(signs []sign) pytorch.Range {
	r := pytorch.Range{First: pytorch.Oldest, Last: pytorch.Newest}
	told := false
	for _, s := range signs {
		told = told || s.present || s.visible
		if s.present {
			r.First = max(r.First, s.since)
		}
	}
	for _, s := range signs {
		if s.visible && !s.present && s.since > r.First {
			r.Last = min(r.Last, s.since-1)
		}
	}
	if !told {
		return pytorch.Range{}
	}
	return r
}
