package explain

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// FromText explains a failed request without a snapshot: by the arithmetic of
// the numbers in an out-of-memory message, in a dump of memory_stats(), or in
// both. The numbers of a message are rounded, so each is a range, and nothing is
// called certain that another number of the range would undo. What the numbers
// leave open is an alternative, with what a snapshot would have to show.
func FromText(in Input) (*Report, error) {
	if in.Message == nil && in.Stats == nil && in.Refusal == nil {
		return nil, errors.New("nothing to explain: neither a message nor a dump of memory_stats() is given")
	}
	a := &textEvidence{Input: in, report: newReport()}
	a.report.Warning = answer.MessageWarning(in.Message)
	a.collect()
	if a.impossible != nil {
		return nil, a.impossible
	}
	switch {
	case in.Message == nil && in.Refusal != nil:
		a.refused()
	case in.Message == nil && !a.knowsFailure():
		a.dumpOnly()
	case in.Message != nil && in.Message.Backend == message.CUDAMallocAsync:
		a.async()
	case in.Message != nil && in.Message.Backend == message.Driver:
		a.fromLibrary()
	case in.Message != nil && in.Message.Platform == apple:
		a.metal()
	default:
		a.native()
	}
	a.wrapped()
	a.sayLog()
	a.sayDoubts()
	a.dumpLines()
	a.advice()
	if in.Message != nil || in.Refusal == nil {
		a.record()
	}
	a.report.Cause, a.report.CauseConfidence = causeOf(a.report.Trigger), a.report.Confidence
	a.unproved()
	return a.report, nil
}

// sayLog adds what the log says beside the numbers.
func (a *textEvidence) sayLog() {
	if a.Log == nil {
		return
	}
	r := a.report
	r.Log = a.Log
	r.shows(a.Log.Frames, a.Log.Site)
	if a.Message != nil {
		r.Summary += a.Log.text()
	}
	switch t := a.Log.Trend; {
	case t == nil:
	case r.Trigger == None: // there is nothing more important
		r.Summary = t.Text("dumps") + " " + r.Summary
	default:
		r.Summary += " " + t.Text("dumps")
	}
}

// newReport returns a report in which every list is there.
func newReport() *Report {
	return &Report{
		Alternatives: []Alternative{}, Pinners: []Segment{}, Holders: []Holder{}, AtPeak: []Holder{}, ByLine: []LineHolder{},
		ByModule: []ModuleHolder{}, ByKind: []CategoryHolder{}, Findings: []Finding{}, Fixes: []Fix{}, AfterUpgrade: []Fix{}, Arithmetic: []string{},
		Record: []string{}, Notes: []string{}, Limit: Limit{Source: whatif.None},
	}
}

// textEvidence is what the texts say about the moment of the failure. Nil is
// unknown.
type textEvidence struct {
	Input
	report *Report

	segment *units.Range // asked of the driver
	request *units.Range // rounded: what it takes of a segment
	live    *units.Range // in tensors
	pools   *units.Range // free in private pools
	unused  *units.Range // free in the default pool, and pending
	pending *units.Range // freed, waiting for another stream

	reserved *units.Range
	free     *units.Range // of the device
	total    *units.Range
	limit    *units.Range

	sameMoment   bool // the dump is of the moment of the failure
	contradicted bool // the sizes of the device cannot be true with the rest
	doubts       []string
	impossible   *LimitError
	settings     *settings.Settings
}

func exactly(n uint64) *units.Range {
	r := units.Exactly(n)
	return &r
}

func (a *textEvidence) note(format string, args ...any) {
	a.report.Notes = append(a.report.Notes, fmt.Sprintf(format, args...))
}

func (a *textEvidence) line(format string, args ...any) {
	a.report.Arithmetic = append(a.report.Arithmetic, fmt.Sprintf(format, args...))
}

// alternative adds a trigger that is left open, and what would make it right.
func (a *textEvidence) alternative(verdict, format string, args ...any) {
	a.report.Alternatives = append(a.report.Alternatives, Alternative{verdict, "if " + fmt.Sprintf(format, args...)})
}

// collect joins what the texts say.
func (a *textEvidence) collect() {
	a.believed()
	a.sane()
	if o := a.Message; o != nil {
		a.segment, a.total, a.free, a.limit = whole(o.TriedBytes, o.Backend), o.TotalBytes, o.FreeBytes, o.LimitBytes
		a.live, a.pools = o.AllocatedBytes, o.PrivatePoolBytes
		if a.pools != nil && a.live != nil { // spec 13.1: free, whatever the wording
			live := a.live.Sub(*a.pools)
			a.live = &live
		}
		if a.pools == nil && printsPools(o) {
			a.pools = exactly(0)
		}
		if r, ok := o.Reserved(); ok {
			a.reserved = &r
		}
		if u, ok := o.Unallocated(); ok {
			a.unused = &u
		}
		if o.ActiveBytes != nil && o.AllocatedBytes != nil {
			p := o.ActiveBytes.Sub(*o.AllocatedBytes)
			a.pending = &p
		}
	}
	a.fromFacts()
	a.fromDump()
	a.contradictions()
	if a.segment != nil && a.request == nil {
		a.request = a.requestOf(*a.segment)
	}
	a.findLimit()
	a.evidence()
}

// believed reads the settings that the user, or the recorder, believes in.
func (a *textEvidence) believed() {
	if a.Believed == nil && a.Facts != nil {
		if text, ok := a.Facts.Conf(); ok {
			a.Believed = &text
		}
	}
	if a.Believed == nil {
		return
	}
	s, skipped, err := settings.ParseKnown(*a.Believed)
	if err != nil {
		a.note("%s", (&whatif.SettingError{Conf: *a.Believed, Err: err}).Error())
		return
	}
	if len(skipped) > 0 {
		a.note("%s", whatif.SkippedText(*a.Believed, skipped))
	}
	a.settings = &s
	a.note("%s are assumed as given: neither a message nor a dump shows which settings are in force", confName(*a.Believed))
}

func confName(conf string) string {
	if conf == "" {
		return "PyTorch's default settings"
	}
	return fmt.Sprintf("the settings %q", conf)
}

// printsPools reports whether a message would name free memory in private pools
// if there was some: from 2.4 on.
func printsPools(o *message.OOM) bool {
	first, _ := releases(o.Version)
	return (o.Platform == "CUDA" || o.Platform == "HIP") && o.ReservedUnallocatedBytes != nil && first >= 204
}

// releases reads the guess of a PyTorch version, "1.10-2.0" or "2.4+", as
// numbers 100 x major + minor.
func releases(version string) (first, last int) {
	from, to, isRange := strings.Cut(version, "-")
	number := func(s string) (int, bool) {
		var major, minor int
		n, _ := fmt.Sscanf(s, "%d.%d", &major, &minor)
		return 100*major + minor, n == 2
	}
	first, known := number(from)
	last = first
	if n, ok := number(to); isRange && ok {
		last = n
	}
	if !known || strings.HasSuffix(version, "+") {
		last = math.MaxInt
	}
	return first, last
}

// whole returns the size of a segment, which is a multiple of a unit: if the
// printed text leaves only one, it is that.
func whole(r *units.Range, backend string) *units.Range {
	if r == nil || backend != message.Native {
		return r
	}
	const unit = alloc.SegmentUnit
	first := (r.Low + unit - 1) / unit * unit
	if r.Contains(first) && first+unit > r.High {
		return exactly(first)
	}
	return r
}

// requestOf returns what a request can have been that asked the driver for a
// segment (spec 1.3).
func (a *textEvidence) requestOf(segment units.Range) *units.Range {
	if a.Message != nil && (a.Message.Backend != message.Native || a.Message.Platform == apple) {
		return &segment // they print the request itself
	}
	s := settings.Default()
	if a.settings != nil {
		s = *a.settings
	}
	rules := alloc.RulesOf(s, pytorch.Default)
	low, _ := rules.Requests(segment.Low)
	_, high := rules.Requests(segment.High)
	if segment.Contains(s.LargeSegmentSize) {
		low, _ = rules.Requests(s.LargeSegmentSize)
	}
	if segment.Contains(alloc.SmallSegment) {
		low, high = rules.Requests(alloc.SmallSegment)
	}
	r := units.Between(max(low, alloc.MinBlock), high)
	return &r
}

// fromFacts takes what a recorder wrote down, which is exact.
func (a *textEvidence) fromFacts() {
	s := a.Facts
	if s == nil || s.Reason != recorder.OOM || s.SegmentBytes == nil || a.segment != nil && !a.segment.Contains(*s.SegmentBytes) {
		return
	}
	a.segment = exactly(*s.SegmentBytes)
	if s.RequestBytes != nil {
		a.request = exactly(*s.RequestBytes)
	}
	if s.DeviceFreeBytes != nil && (a.free == nil || a.free.Contains(*s.DeviceFreeBytes)) {
		a.free = exactly(*s.DeviceFreeBytes)
	}
	if s.Device == nil {
		return
	}
	if d := s.DeviceFacts(*s.Device); d != nil && d.TotalBytes != nil && (a.total == nil || a.total.Contains(*d.TotalBytes)) {
		a.total = exactly(*d.TotalBytes)
	}
}

// knowsFailure reports whether the request that failed is known at all.
func (a *textEvidence) knowsFailure() bool { return a.Message != nil || a.segment != nil }

// findLimit takes the limit that was given, else the recorded one, else that of
// the message.
func (a *textEvidence) findLimit() {
	source := whatif.None
	if a.limit != nil {
		source = "message"
	}
	said := a.limit
	if a.Facts != nil && a.Facts.Device != nil {
		if n := whatif.RecordedLimit(a.Facts, *a.Facts.Device); n != nil {
			a.limit, source = exactly(*n), whatif.Recorded
		}
	}
	if a.Limit > 0 {
		a.limit, source = exactly(a.Limit), whatif.Given
	}
	if said != nil && source == whatif.Recorded && !said.Contains(a.limit.Low) {
		a.doubt("the recorded limit of %s, and %s allowed in the message", units.Size(a.limit.Mid), units.Size(said.Mid))
	}
	a.refutes(said)
	a.report.Limit.Source = source
	if a.limit != nil {
		a.report.Limit.Min, a.report.Limit.Max = &a.limit.Low, &a.limit.High
	}
}

// evidence fills in the numbers, each the middle of its range.
func (a *textEvidence) evidence() {
	mid := func(r *units.Range) *uint64 {
		if r == nil {
			return nil
		}
		return &r.Mid
	}
	e := &a.report.Evidence
	*e = Evidence{
		Live: mid(a.live), Segment: mid(a.segment), FreePools: mid(a.pools), Pending: mid(a.pending), Reserved: mid(a.reserved),
		DeviceFree: mid(a.free), DeviceTotal: mid(a.total), External: mid(a.external()), Free: mid(a.cached()),
	}
	if a.request != nil && a.request.Exact() {
		e.Rounded = mid(a.request)
	}
}

// cached returns the memory that is reserved and in no tensor.
func (a *textEvidence) cached() *units.Range {
	if a.unused == nil {
		return nil
	}
	sum := *a.unused
	if a.pools != nil {
		sum = sum.Add(*a.pools)
	}
	return &sum
}

// external returns what the device holds that PyTorch does not own; nil if
// unknown, and if the driver lends memory of the host, so that the sum says
// nothing.
func (a *textEvidence) external() *units.Range {
	if a.total == nil || a.free == nil || a.reserved == nil {
		return nil
	}
	used := a.free.Add(*a.reserved)
	if used.Mid > a.total.Mid && used.Low > a.total.High {
		return nil
	}
	o := a.total.Sub(used)
	return &o
}

// available is what there is for PyTorch, and whether the limit decides that;
// nil if it is not known.
func (a *textEvidence) available() (there *units.Range, capped bool) {
	if a.reserved != nil && a.free != nil {
		r := a.reserved.Add(*a.free)
		there = &r
		if a.total != nil { // what is lent of the host does not count
			r = least(r, *a.total)
		}
	}
	if a.limit != nil && (there == nil || a.limit.Mid <= there.Mid) {
		return a.limit, true
	}
	return there, false
}

// least returns the range of the smaller of two numbers.
func least(x, y units.Range) units.Range {
	return units.Range{Low: min(x.Low, y.Low), Mid: min(x.Mid, y.Mid), High: min(x.High, y.High)}
}

// surelyMore reports whether x is more than y, whatever they are.
func surelyMore(x, y units.Range) bool { return x.Low > y.High }

// surelyFits reports whether x is at most y, whatever they are.
func surelyFits(x, y units.Range) bool { return x.High <= y.Low }

// unbounded reports whether all that is known of a size is that it is absurd.
func unbounded(r *units.Range) bool { return r != nil && r.High == math.MaxUint64 }

// unproved puts what one would try first before the numbers: a text has nothing to
// replay it on.
func (a *textEvidence) unproved() {
	if a.Refusal != nil {
		return // a library says what to change
	}
	unknown := &prognosis.Carries{Kind: prognosis.Unknown, RestsOn: "a message alone"}
	of := allocatorOf(a.Message)
	var first Fix
	switch a.report.Trigger {
	case Fragmentation:
		if a.Message != nil && a.Message.Backend != message.Native {
			return
		}
		s := settings.Default()
		s.ExpandableSegments = true
		first = Fix{Kind: FixSetting, Settings: s.String(), Export: of.Export(s), Carries: unknown, Detail: "free memory can then be joined; a message alone does not prove that it is enough, a snapshot does"}
		var use answer.Use
		if use, first.Requires = of.Takes(s); use == answer.Later {
			a.report.AfterUpgrade = append(a.report.AfterUpgrade, first)
			return
		}
	case External:
		first = Fix{Kind: FixOthers, Code: of.Lister(), Carries: unknown, Detail: "end the other users of the device, or move the job"}
		if a.Message != nil && a.Message.Platform == apple {
			first.Code, first.Detail = "", "free what else this process holds of the GPU's memory; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit, and may freeze the system"
		}
	default:
		return
	}
	a.report.Fixes = slices.Insert(a.report.Fixes, 0, first)
}
