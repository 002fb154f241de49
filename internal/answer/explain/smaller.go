package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// Smaller are settings with which a run reserves less memory at its peak.
type Smaller struct {
	Settings     string  `json:"settings"`
	Export       string  `json:"export"`
	Requires     string  `json:"requires,omitempty"` // what it takes to use them
	PeakReserved uint64  `json:"peak_reserved_bytes"`
	Saved        uint64  `json:"saved_bytes"` // of the peak now
	DriverMS     float64 `json:"estimated_driver_ms"`
}

// EmptyCacheCalls are the calls of empty_cache() inside steps that released
// something, and what becomes of the run without them.
type EmptyCacheCalls struct {
	Calls               int     `json:"calls"`
	Steps               int     `json:"steps"` // with such a call
	PeakReservedWithout uint64  `json:"peak_reserved_without_bytes"`
	DriverMSWithout     float64 `json:"estimated_driver_ms_without"`
	FailsWithout        bool    `json:"fails_without"` // a request, under the limit of the run
}

// Retry is a request for which the cache was released because there was no room
// for a new segment; of those with its call stack the first.
type Retry struct {
	timeline.Moment
	Count       int              `json:"retries"` // for requests with this call stack
	Request     uint64           `json:"request_bytes"`
	Free        uint64           `json:"free_bytes"` // cached, before the release
	LargestFree uint64           `json:"largest_free_bytes"`
	Frames      []timeline.Frame `json:"stack"`
	Site        timeline.Site    `json:"-"` // if there are Frames
}

// replays adds what other replays of a healthy run show. o is its outcome under
// its own conditions c.
func (e *explainer) replays(h *Health, c replay.Conditions, o *replay.Outcome) error {
	var list []settings.Settings
	if e.trace.Events.Len() > 0 && !e.trace.Partial {
		list = Remedies(e.program.Settings)
	}
	outcomes := make([]*replay.Outcome, len(list))
	var peak, end *replay.Paused
	if err := parallel.Each(e.ctx, parallel.AllCores, len(list)+2, func(i int) (err error) {
		switch i -= 2; i {
		case -2:
			peak, err = e.program.Hold(e.ctx, c, o.Reserved.Event+1)
		case -1:
			end, err = e.program.Hold(e.ctx, c, e.trace.Events.Len())
		default:
			with := c
			with.Settings = list[i]
			if outcomes[i], err = e.program.Run(e.ctx, with); err != nil {
				return e.ctx.Err() // a device that refuses a setting is no remedy
			}
		}
		return err
	}); err != nil {
		return err
	}
	if t := peak.Totals(); t.Reserved > 0 {
		part := 1 - float64(t.Allocated)/float64(t.Reserved)
		h.FragmentationPeak = &part
	}
	if !e.trace.Partial {
		n := end.Releasable()
		h.Releasable = &n
	}
	for _, s := range h.smaller(list, outcomes, answer.AllocatorOf(e.trace)) {
		e.report.AfterUpgrade = append(e.report.AfterUpgrade, Fix{
			Kind: FixSetting, Settings: s.Settings, Export: s.Export, Requires: s.Requires, PeakReserved: &s.PeakReserved, DriverMS: &s.DriverMS,
			Detail: fmt.Sprintf("%s reserved at the peak, %s less", units.Size(s.PeakReserved), units.Size(s.Saved)),
		})
	}
	if err := e.emptyCaches(h, c); err != nil {
		return err
	}
	return e.retries(h, c)
}

// smaller lists the settings that save more than a granule. Several at once are
// worth naming only if they save more than a granule beyond each that is simpler.
// It returns those that only later releases of PyTorch know.
func (h *Health) smaller(list []settings.Settings, outcomes []*replay.Outcome, of answer.Allocator) (later []Smaller) {
	keys := make(map[settings.Settings]int, len(list))
	order := make([]int, len(list))
	for i, s := range list {
		keys[s], order[i] = len(switchedOff(s)), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[list[a]], keys[list[b]]) })
	for _, i := range order {
		s, o := list[i], outcomes[i]
		use, requires := of.Takes(s)
		if o == nil || o.Fails || use == answer.Never {
			continue
		}
		rules := alloc.RulesOf(s, pytorch.Default)
		worthwhile := func(than uint64) bool { return o.Reserved.Bytes+rules.Granule(true) < than }
		beaten := func(x Smaller) bool { return keys[s] > 1 && !worthwhile(x.PeakReserved) }
		if !worthwhile(h.PeakReserved) || slices.ContainsFunc(h.Smaller, beaten) {
			continue
		}
		to := &h.Smaller
		if use == answer.Later {
			to = &later
		}
		*to = append(*to, Smaller{s.String(), of.Export(s), requires, o.Reserved.Bytes, h.PeakReserved - o.Reserved.Bytes, *ms(o)})
	}
	for _, list := range [][]Smaller{h.Smaller, later} {
		slices.SortStableFunc(list, func(a, b Smaller) int { return cmp.Compare(a.PeakReserved, b.PeakReserved) })
	}
	return later
}

// emptyCaches replays the run without the calls of empty_cache() inside steps.
func (e *explainer) emptyCaches(h *Health, c replay.Conditions) error {
	calls := e.program.EmptyCaches()
	if len(calls) == 0 {
		return nil
	}
	a, err := e.Run.Analysis(e.ctx)
	if err != nil {
		return err
	}
	steps := map[int]bool{}
	outside := slices.DeleteFunc(slices.Clone(calls), func(event int) bool {
		i := a.Steps.Of(event)
		if i >= 0 {
			steps[i] = true
		}
		return i >= 0
	})
	if len(steps) == 0 {
		return nil
	}
	o, err := e.program.EmptyCacheAt(outside).Run(e.ctx, c)
	if err != nil {
		return err
	}
	h.EmptyCache = &EmptyCacheCalls{
		Calls: len(calls) - len(outside), Steps: len(steps),
		PeakReservedWithout: o.Reserved.Bytes, DriverMSWithout: *ms(o), FailsWithout: o.Fails,
	}
	return nil
}

// maxRetries is how many call stacks with retries a report has.
const maxRetries = 3

// retries finds the requests for which the cache was released.
func (e *explainer) retries(h *Health, c replay.Conditions) error {
	if h.Retries == 0 || c.Settings.GarbageCollectionThreshold > 0 { // a collection looks the same
		return nil
	}
	last, byStack := -1, map[trace.StackID]*Retry{}
	var found []*Retry
	c.Observe = func(call int, event alloc.Event) {
		if call == last || event.Action != alloc.ActionSegmentFree && event.Action != alloc.ActionSegmentUnmap {
			return
		}
		last = call
		made := e.program.Call(call)
		if made.Kind != replay.CallAlloc {
			return
		}
		stack := e.trace.Events.Stack.At(made.Event)
		r := byStack[stack]
		if r == nil {
			r = &Retry{Moment: e.Run.Moments.Event(made.Event), Request: made.Size, Frames: timeline.Frames(e.trace, stack)}
			r.Site, _ = timeline.SiteOf(e.trace, stack)
			byStack[stack] = r
			found = append(found, r)
		}
		r.Count++
	}
	if _, err := e.program.Run(e.ctx, c); err != nil {
		return err
	}
	slices.SortStableFunc(found, func(a, b *Retry) int { return cmp.Compare(b.Count, a.Count) })
	c.Observe = nil
	for _, r := range found[:min(len(found), maxRetries)] {
		m, err := e.program.Hold(e.ctx, c, *r.Event)
		if err != nil {
			return err
		}
		t := m.Totals()
		r.Free, r.LargestFree = t.Reserved-t.Active, m.LargestFree()
		h.RetriedFor = append(h.RetriedFor, *r)
	}
	return nil
}
