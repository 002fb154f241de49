package explain_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// story is a program that ends in a failed request whose cause is known,
// because the program was made so. It is told in several ways, see [ways].
type story struct {
	name string
	why  string // the truth, in a sentence

	available uint64 // what there is: the limit, or what the device has
	conf      string
	setup     func(*scenario.Scenario)
	request   func(*scenario.Scenario) // one call of Alloc, in a pool or not
	early     bool                     // only the older events show it: not told from mid-run

	truth
}

// truth is what an explanation has to find. The numbers are computed by hand.
type truth struct {
	verdict string // the trigger
	cause   string // if it is not that of the trigger

	live, rounded, segment uint64
	reserved, free         uint64 // after PyTorch had flushed its cache
	usable, largest        uint64 // of free: for the request's pool and stream, and the largest piece there
	streams, pools         uint64 // of free: of other streams, in private pools
	pending                uint64 // before the flush

	// served is the most that was reserved and asked for by a request that was
	// served: the limit is not below it.
	served uint64
	// Below even another verdict is right, the one named here; if even is 0 it
	// is capacity below live + rounded. From it on it is beyond, if that is not
	// the verdict.
	even          uint64
	below, beyond string

	passes       uint64 // the limit with which the request is served
	passesDevice uint64 // what the device would need, if that is not the same

	empties  bool     // empty_cache() before the request is a fix
	cures    []cure   // pools that the program can give up before the request
	best     string   // of the settings that help
	settings []string // these are among them
	says     string   // in the summary
	pinned   []pinned // in the order of the report; nil leaves them out
}

// cure is a change of the program before the request.
type cure struct {
	do    func(*scenario.Scenario)
	bytes uint64
	says  string // in the detail
}

// pinned is a segment that live blocks keep from release.
type pinned struct {
	size, stuck uint64
	by          []string // "bytes count site"
}

// way is a circumstance under which a story is told.
type way struct {
	name   string
	device bool // no limit: the device is really full
	midrun bool // the recording begins just before the request
	ring   bool // the older half of the events was lost
	input  func(*story, *explain.Input)
	source string
}

var ways = []way{
	{name: "limit given", input: func(s *story, in *explain.Input) { in.Limit = s.available }, source: "given"},
	{name: "limit unknown", source: "inferred"},
	{name: "limit recorded", source: "recorded", input: func(s *story, in *explain.Input) {
		in.Facts = &recorder.Facts{Devices: []recorder.Device{{LimitBytes: &s.available, LimitKnown: true}}}
	}},
	{name: "full device", device: true, source: "none"},
	{name: "mid-run, limit unknown", midrun: true, source: "inferred"},
	{name: "mid-run", midrun: true, source: "given", input: func(s *story, in *explain.Input) { in.Limit = s.available }},
	{name: "mid-run, full device", midrun: true, device: true, source: "none"},
	{name: "ring", ring: true, source: "given", input: func(s *story, in *explain.Input) { in.Limit = s.available }},
}

// deviceMemory is the size of the devices.
const deviceMemory = 80 * gib

// run runs a story; change may add to the program before the request, or
// alter the configuration.
func (s *story) run(t testing.TB, c scenario.Config, before func(*scenario.Scenario)) (*trace.Trace, bool) {
	t.Helper()
	failed := false
	tr, err := scenario.Run(c, func(sc *scenario.Scenario) {
		s.setup(sc)
		if sc.OOM() != nil {
			t.Errorf("%s: the setup fails already: %v", s.name, sc.OOM())
		}
		if before != nil {
			before(sc)
		}
		s.request(sc)
		failed = sc.OOM() != nil
	})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return tr, failed
}

// config returns how a story is run.
func (s *story) config(w way) scenario.Config {
	c := scenario.Config{Conf: s.conf, Limit: s.available, TotalMemory: deviceMemory}
	if w.device {
		c.Limit, c.Unusable = 0, deviceMemory-s.available
	}
	return c
}

// tell runs a story and explains it.
func (s *story) tell(t *testing.T, w way) (*explain.Report, *trace.Trace) {
	t.Helper()
	c := s.config(w)
	var before func(*scenario.Scenario)
	if w.midrun {
		before = (*scenario.Scenario).Record
	}
	tr, failed := s.run(t, c, before)
	if !failed {
		t.Fatalf("%s: nothing fails", s.name)
	}
	if w.ring {
		c.MaxEntries = (tr.Events.Len() + 1) / 2
		tr, _ = s.run(t, c, before)
	}
	in := explain.Input{}
	if w.input != nil {
		w.input(s, &in)
	}
	return explained(t, tr, in), tr
}

// explained explains a trace.
func explained(t testing.TB, tr *trace.Trace, in explain.Input) *explain.Report {
	t.Helper()
	c, err := run.New(tr, in.Facts).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in.Run = c
	r, err := explain.FromSnapshot(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check runs stories in all ways.
func check(t *testing.T, stories []story) {
	t.Helper()
	for i := range stories {
		s := &stories[i]
		t.Run(s.name, func(t *testing.T) {
			if s.why == "" || s.need() > s.available != (s.verdict == explain.Capacity) && s.verdict != explain.Setting {
				t.Errorf("a story that does not hold together: %+v", s.truth)
			}
			for _, w := range ways {
				if s.early && (w.midrun || w.ring && s.pending == 0) { // the newer half has the frees
					continue
				}
				r, tr := s.tell(t, w)
				said := false
				fail := func(format string, args ...any) {
					t.Helper()
					if said {
						t.Errorf("%s: %s", w.name, fmt.Sprintf(format, args...))
						return
					}
					said = true
					t.Errorf("%s: %s\n%s\nbut: %s %s: %s", w.name, fmt.Sprintf(format, args...), s.why, r.Trigger, r.Confidence, r.Summary)
				}
				s.checkVerdict(r, tr, w, fail)
				s.checkCause(r, fail)
				s.checkEvidence(r, w, fail)
				checkDump(r, tr, fail)
				s.checkPinned(r, tr, w, fail)
				if !w.midrun && !w.ring && w.source != "inferred" {
					s.checkFixes(t, r, w, fail)
				}
			}
		})
	}
}

func (s *story) need() uint64 { return s.live + s.rounded }

// checkCause compares the cause with the trigger: these programs have no steps
// that could show another one. Whether the first step would have needed more than
// there is nobody knows.
func (s *story) checkCause(r *explain.Report, fail func(string, ...any)) {
	var want string
	switch r.Trigger {
	case explain.Pools, explain.Pending, explain.Streams:
		want = explain.Stranded
	case explain.Setting:
		want = explain.Fragmentation
	case explain.Capacity, explain.Fragmentation:
		want = r.Trigger
	}
	switch {
	case r.Cause == want, r.Cause == s.cause:
	case r.Trigger == explain.Fragmentation && r.Cause == explain.Capacity && r.CauseConfidence == explain.Open:
	default:
		fail("the cause is %s %s: %s", r.Cause, r.CauseConfidence, r.CauseText)
	}
	if r.Cause == explain.Leak { // that is where the leak is, not the request
		return
	}
	if r.Where != "train.py:40 loss" || r.Line == nil || r.Line.String() != r.Where {
		fail("the cause is in %s", r.Where)
	}
}

// checkVerdict compares what is said with the truth. If the limit has to be
// inferred it lies between what was served and what was refused.
func (s *story) checkVerdict(r *explain.Report, tr *trace.Trace, w way, fail func(string, ...any)) {
	verdict, confidence := s.verdict, explain.Certain
	low, high, even, below := s.available, s.available, cmp.Or(s.even, s.need()), cmp.Or(s.below, explain.Capacity)
	if w.source == "inferred" {
		low, high = s.served, s.reserved+s.segment-1
		if w.midrun {
			low = atFirst(tr)
			if strings.Contains(s.conf, "expandable") {
				low -= 20 * mib // what a mapping may exceed the limit by
			}
		}
		switch {
		case high < even:
			verdict = below
		case low < even:
			verdict, confidence = s.above(), explain.Open
		default:
			verdict = s.above()
		}
	}
	if r.Trigger != verdict || r.Confidence != confidence {
		fail("want %s %s", verdict, confidence)
	}
	if verdict == s.verdict && !strings.Contains(r.Summary, s.says) {
		fail("the summary does not say %q", s.says)
	}
	if !r.SelfCheck.Complete {
		fail("the replay is not identical: %s", r.SelfCheck.Note)
	}
	if confidence == explain.Open {
		if r.BreakEven == nil || *r.BreakEven != even {
			fail("break-even limit %s, want %s", text(r.BreakEven), units.Size(even))
		}
		want := []explain.Alternative{{Verdict: below, When: "if the limit was below " + units.SizeUp(even)}}
		if below != explain.Capacity && low < s.need() {
			want = slices.Insert(want, 0, explain.Alternative{Verdict: explain.Capacity, When: "if the limit was below " + units.SizeUp(s.need())})
		}
		if !slices.Equal(r.Alternatives, want) {
			fail("alternatives %+v, want %+v", r.Alternatives, want)
		}
	} else if r.BreakEven != nil || len(r.Alternatives) != 0 {
		fail("alternatives %+v, break-even %s", r.Alternatives, text(r.BreakEven))
	}
	if r.Capped != !w.device {
		fail("capped %v", r.Capped)
	}
	l := r.Limit
	if l.Source != w.source {
		fail("limit from %s, want %s", l.Source, w.source)
	}
	if w.device {
		if l.Min != nil || l.Max != nil {
			fail("a limit of %s to %s where there is none", text(l.Min), text(l.Max))
		}
	} else if l.Min == nil || l.Max == nil || *l.Min != low || *l.Max != high {
		fail("limit from %s to %s, want %s to %s", text(l.Min), text(l.Max), units.Size(low), units.Size(high))
	}
	if f := r.Failure; f == nil || f.Event == nil || f.OOMs != 1 || f.Caught {
		fail("failure %+v", f)
	}
}

// atFirst returns what is reserved before the first event.
func atFirst(tr *trace.Trace) uint64 {
	var bytes uint64
	for i := range tr.Segments {
		bytes += tr.Segments[i].TotalSize
	}
	for i := range tr.Events.Len() {
		switch e := tr.Events.At(i); e.Action {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
			bytes -= e.Size
		case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
			bytes += e.Size
		}
	}
	return bytes
}

// above returns the verdict if the limit is not below even.
func (s *story) above() string {
	if s.verdict == explain.Capacity {
		return explain.Fragmentation
	}
	return cmp.Or(s.beyond, s.verdict)
}

func text(p *uint64) string {
	if p == nil {
		return "-"
	}
	return units.Size(*p)
}
