package answers

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// Summary is what the questions need of the documents of a file. It is small, so
// that a hundred thousand of them fit into memory, and is stored beside the
// documents. Nil is not known.
type Summary struct {
	Kind    input.Kind `json:"kind"`
	Device  *int       `json:"device,omitempty"`
	PyTorch string     `json:"pytorch,omitempty"`
	// WrittenUS is when the file was written by the clock of its host: as the
	// recorder says, else the time of the last event.
	WrittenUS *int64 `json:"written_us,omitempty"`

	Settings *string `json:"settings,omitempty"`
	Events   int     `json:"events"`
	OOMs     int     `json:"oom_events"`
	// Partial reports that the file ends within its events: its peaks are lower
	// bounds.
	Partial bool `json:"partial,omitempty"`

	PeakAllocated *uint64 `json:"peak_allocated_bytes,omitempty"`
	PeakReserved  *uint64 `json:"peak_reserved_bytes,omitempty"`
	PeakRequested *uint64 `json:"peak_requested_bytes,omitempty"`
	Allocated     *uint64 `json:"allocated_bytes,omitempty"` // at the end
	Reserved      *uint64 `json:"reserved_bytes,omitempty"`

	Cause      string  `json:"cause,omitempty"`
	Trigger    string  `json:"trigger,omitempty"`
	Confidence string  `json:"confidence,omitempty"`
	Limit      *uint64 `json:"limit_bytes,omitempty"`
	Request    *uint64 `json:"request_bytes,omitempty"` // that failed
	Line       string  `json:"line,omitempty"`          // of the user's code that the cause shows at

	// RequestSite is where the request was made that failed, HolderSite where the
	// memory was allocated that is in its way; nil if nothing failed, or without
	// call stacks.
	RequestSite *Site `json:"request_site,omitempty"`
	HolderSite  *Site `json:"holder_site,omitempty"`
	Fixes       []Fix `json:"fixes,omitempty"` // as explain orders them
}

// Site is a call stack by the frames that a reader sees.
type Site struct {
	Inner timeline.Frame  `json:"inner"`
	User  *timeline.Frame `json:"user,omitempty"` // nil if all of it is libraries
}

// Fix is a fix of an explanation.
type Fix struct {
	Kind     string `json:"kind"`
	Settings string `json:"settings,omitempty"`
	Passes   bool   `json:"passes,omitempty"` // the failed request is served with it
}

// Summarize takes from the documents of a file what the questions need. s is nil
// for a file that has no statistics, x for one that cannot be explained, facts if
// no recorder wrote any.
func Summarize(s *stats.Document, x *explain.Document, facts *recorder.Facts) Summary {
	var out Summary
	switch {
	case s != nil && s.Snapshot != nil:
		out.addSnapshot(s.Snapshot)
	case s != nil:
		out.addText(s)
	}
	if s != nil {
		out.Kind = s.Kind
	}
	if x != nil {
		out.addReport(x)
	} else if out.OOMs > 0 {
		out.Cause, out.Trigger = explain.Unknown, explain.Unknown
	}
	if facts != nil && facts.TimeUS != nil {
		out.WrittenUS = facts.TimeUS
	}
	return out
}

// pytorchRange names the versions that may have written a file, as "2.11" or
// "2.6 to 2.8"; empty if nothing is known.
func pytorchRange(p *replay.PyTorch) string {
	switch {
	case p.First == nil:
		return ""
	case p.Last == nil || *p.First == *p.Last:
		return *p.First
	}
	return *p.First + " to " + *p.Last
}

func (s *Summary) addSnapshot(of *stats.Snapshot) {
	m := &of.Memory
	s.Events, s.OOMs, s.Partial = of.Events, len(of.OOMs), m.Reserved.AtLeast
	s.Allocated, s.Reserved = m.Allocated.Now, m.Reserved.Now
	s.PeakAllocated, s.PeakReserved, s.PeakRequested = m.Allocated.Peak, m.Reserved.Peak, m.Requested.Peak
	if of.Events == 0 { // as diff has it: the end stands for the peaks
		s.PeakAllocated, s.PeakReserved, s.PeakRequested = m.Allocated.Now, m.Reserved.Now, m.Requested.Now
	}
	s.WrittenUS = of.LastTime
	s.Device, s.PyTorch, s.Settings = of.Device, pytorchRange(&of.PyTorch), of.Settings.Conf
	if n := len(of.OOMs); n > 0 {
		s.RequestSite = siteOf(of.OOMs[n-1].Frames) // unless the explanation is of another
	}
}

// addText takes the peaks of the last dump.
func (s *Summary) addText(of *stats.Document) {
	s.OOMs, s.Partial = len(of.Messages), true
	if len(of.Dumps) == 0 {
		return
	}
	values := of.Dumps[len(of.Dumps)-1].Values
	for _, v := range []struct {
		key string
		to  **uint64
	}{
		{"allocated_bytes.all.current", &s.Allocated},
		{"reserved_bytes.all.current", &s.Reserved},
		{"allocated_bytes.all.peak", &s.PeakAllocated},
		{"reserved_bytes.all.peak", &s.PeakReserved},
		{"requested_bytes.all.peak", &s.PeakRequested},
	} {
		if n, ok := values[v.key]; ok && n >= 0 {
			bytes := uint64(n)
			*v.to = &bytes
			s.Partial = false
		}
	}
}

func (s *Summary) addReport(x *explain.Document) {
	r := x.Report
	s.Kind, s.Device = x.Kind, x.Device
	s.Cause, s.Trigger, s.Confidence = r.Cause, r.Trigger, r.CauseConfidence
	s.Limit, s.Request = r.Limit.Max, r.Evidence.Request
	if r.Line != nil {
		s.Line = r.Line.String()
	}
	if s.Partial && s.PeakReserved == nil { // a message: what there was at the failure
		s.Allocated, s.Reserved = r.Evidence.Live, r.Evidence.Reserved
		s.PeakAllocated, s.PeakReserved = s.Allocated, s.Reserved
	}
	if r.Trigger == explain.None {
		s.RequestSite = nil
		return
	}
	switch {
	case r.Failure != nil:
		s.RequestSite = siteOf(r.Failure.Frames)
	case r.Log != nil:
		s.RequestSite = siteOf(r.Log.Frames)
	}
	s.HolderSite = mainHolder(r)
	for _, f := range r.Fixes {
		s.Fixes = append(s.Fixes, Fix{f.Kind, f.Settings, f.PassesFailure != nil && *f.PassesFailure})
	}
}

// siteOf returns the frames that a reader sees of a stack; nil without any.
func siteOf(frames []timeline.Frame) *Site {
	at, ok := timeline.SiteOfFrames(frames)
	if !ok {
		return nil
	}
	s := &Site{Inner: at.Inner}
	if at.HasUser {
		user := at.User
		s.User = &user
	}
	return s
}

// mainHolder finds what is in the way of a request: what leaks, what pins most
// free memory if that was the cause, else what holds most.
func mainHolder(r *explain.Report) *Site {
	switch r.Cause {
	case explain.Leak:
		for _, f := range r.Findings {
			if f.Kind == explain.Leak {
				return siteOf(f.Frames)
			}
		}
	case explain.Fragmentation:
		if s := mainPinner(r.Pinners); s != nil {
			return s
		}
	}
	for _, h := range r.Holders {
		if s := siteOf(h.Frames); s != nil {
			return s
		}
	}
	return nil
}

// mainPinner returns the site whose blocks keep most free memory from release.
// A segment counts for the largest of the blocks in it.
func mainPinner(segments []explain.Segment) *Site {
	type pinner struct {
		site  *Site
		stuck uint64
	}
	var all []pinner
	for _, seg := range segments {
		if len(seg.Blocks) == 0 {
			continue
		}
		site := siteOf(seg.Blocks[0].Frames)
		i := slices.IndexFunc(all, func(p pinner) bool { return p.site.equal(site) })
		if i < 0 {
			i, all = len(all), append(all, pinner{site: site})
		}
		all[i].stuck += seg.Stuck
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b pinner) int { return cmp.Compare(a.stuck, b.stuck) }).site
}

// equal reports whether two sites are the same, line by line.
func (s *Site) equal(o *Site) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Inner == o.Inner && (s.User == nil) == (o.User == nil) && (s.User == nil || *s.User == *o.User)
}
