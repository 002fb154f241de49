package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// remedies are the settings that are tried: those that people know and that
// PyTorch's documentation names. ashlar tune searches all of them.
var remedies = []string{
	"expandable_segments:True",
	"max_split_size_mb:128",
	"max_split_size_mb:512",
	"garbage_collection_threshold:0.8",
	"roundup_power2_divisions:4",
	"max_split_size_mb:512,garbage_collection_threshold:0.8,expandable_segments:True",
}

// fixes tries every kind of fix.
func (e *explainer) fixes() error {
	if err := e.emptyCache(); err != nil {
		return err
	}
	e.giveUpPools()
	if e.report.Verdict != Capacity && e.report.Verdict != External {
		if err := e.free(); err != nil {
			return err
		}
	}
	if err := e.settings(); err != nil {
		return err
	}
	return e.moreMemory()
}

// endsThere reports whether the recording ends at the failure, so that a fix is
// proved no further.
func (e *explainer) endsThere() bool {
	for i := e.event + 1; i < e.trace.Events.Len(); i++ {
		if e.trace.Events.Action.At(i) == alloc.ActionAlloc {
			return false
		}
	}
	return true
}

// emptyCache tries torch.cuda.empty_cache() before the request.
func (e *explainer) emptyCache() error {
	served, err := e.failed.servedAfter(e.ctx, e.conditions(e.limits.high), (*replay.Paused).EmptyCache)
	if err != nil {
		return err
	}
	routed := e.failed.call.Pool != (alloc.PoolID{})
	yes := true
	fix := Fix{Kind: FixEmptyCache, PassesFailure: &yes, UntilEvent: &e.event}
	switch {
	case served && e.failed.reproduced && routed:
		fix.Bytes = &e.failed.releasable
		fix.Detail = fmt.Sprintf("call torch.cuda.empty_cache() before the use_mem_pool block or the capture: it releases %s, and the request is served", units.Size(e.failed.releasable))
		e.report.Fixes = append(e.report.Fixes, fix)
	case served && e.failed.reproduced:
		fix.Bytes = &e.failed.pending
		fix.Detail = fmt.Sprintf("call torch.cuda.empty_cache() before the request: it waits for the other streams, which frees the %s that they held, and the request is served",
			units.Size(e.failed.pending))
		e.report.Fixes = append(e.report.Fixes, fix)
	case !routed:
		e.report.Notes = append(e.report.Notes, "torch.cuda.empty_cache() just before the request does not help: PyTorch had already released its cache")
	}
	return nil
}

// giveUpPools tries to release what private pools hold unused.
func (e *explainer) giveUpPools() {
	f := e.failed
	there, known := f.availableUnder(e.limits.high)
	if e.report.Verdict != Pools || f.call.Pool != (alloc.PoolID{}) || !known || f.free.privateWhole == 0 ||
		f.reserved-f.free.privateWhole+f.segment > there.bytes {
		return
	}
	yes := true
	e.report.Fixes = append(e.report.Fixes, Fix{
		Kind: FixCode, PassesFailure: &yes, UntilEvent: &e.event, Bytes: &f.free.privateWhole,
		Detail: fmt.Sprintf("delete the MemPools or graphs before the call: that releases %s that they hold unused, and the request is served",
			units.Size(f.free.privateWhole)),
	})
}

// worthwhile is how many times larger a request must be than what has to be freed
// for it: that freeing as much would serve it is no news.
const worthwhile = 2

// free looks for the tensors whose memory would have made one piece.
func (e *explainer) free() error {
	w := e.failed.smallestWindow()
	if w == nil || w.live == 0 || len(w.blocks) == 0 || w.live > e.failed.rounded/worthwhile {
		return nil
	}
	served, err := e.failed.servedAfter(e.ctx, e.conditions(e.limits.high), func(m *replay.Paused) error {
		for _, addr := range w.blocks {
			if err := m.Free(addr); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !served {
		return err
	}
	yes := true
	e.report.Fixes = append(e.report.Fixes, Fix{
		Kind: FixCode, PassesFailure: &yes, UntilEvent: &e.event, Bytes: &w.live,
		Detail: fmt.Sprintf("free %s (%s) before the call: that makes %s in one piece; allocated at %s",
			tensors(len(w.blocks)), units.Size(w.live), units.Size(w.size), e.sites(w.blocks)),
	})
	return nil
}

func tensors(n int) string {
	if n == 1 {
		return "this tensor"
	}
	return fmt.Sprintf("these %s tensors", units.Count(int64(n)))
}

// sites names where some blocks were allocated.
func (e *explainer) sites(addrs []uint64) string {
	live := e.liveAt()
	sizes := map[string]uint64{}
	for _, a := range addrs {
		name := "an unknown place"
		if l, ok := live[a]; ok && l.Stack > trace.EmptyStack {
			if s, ok := timeline.SiteOf(e.trace, l.Stack); ok {
				name = s.String()
			}
		}
		sizes[name] += live[a].Size
	}
	names := make([]string, 0, len(sizes))
	for name := range sizes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(cmp.Compare(sizes[y], sizes[x]), cmp.Compare(x, y)) })
	const shown = 3
	text := strings.Join(names[:min(shown, len(names))], "; ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more places", more)
	}
	return text
}

// settings replays the recording under each remedy. All settings that pass are
// ranked by the smallest limit they need.
func (e *explainer) settings() error {
	list := Remedies(e.program.Settings)
	fixes := make([]*Fix, len(list))
	lower, err := e.lowerBound()
	if err != nil {
		return err
	}
	if err := parallel.Each(e.ctx, parallel.AllCores, len(list), func(i int) (err error) {
		fixes[i], err = e.setting(list[i], lower)
		return err
	}); err != nil {
		return err
	}
	var found []Fix
	for _, f := range fixes {
		if f != nil {
			found = append(found, *f)
		}
	}
	slices.SortStableFunc(found, func(x, y Fix) int { return cmp.Compare(*x.SmallestLimit, *y.SmallestLimit) })
	e.report.Fixes = append(e.report.Fixes, found...)
	e.advice(found)
	return nil
}

// Remedies returns the settings to try on a run with the given ones: the known
// remedies, the given settings with one of them off, and with expandable segments.
func Remedies(recorded settings.Settings) []settings.Settings {
	recorded.PerProcessMemoryFraction = 1 // the limit stands for it
	seen := map[settings.Settings]bool{recorded: true}
	var out []settings.Settings
	add := func(s settings.Settings) {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for _, conf := range remedies {
		if s, err := settings.Parse(conf); err == nil {
			add(s)
		}
	}
	for _, off := range switchedOff(recorded) {
		add(off.settings)
	}
	more := recorded
	more.ExpandableSegments = true
	add(more)
	return out
}

// setting tries one; nil if the request fails with it too.
func (e *explainer) setting(s settings.Settings, lower uint64) (*Fix, error) {
	c := e.failed.whole(e.conditions(e.limits.high))
	c.Settings = s
	passes, o, err := e.failed.passes(e.ctx, c)
	if err != nil {
		return nil, e.ctx.Err() // a device that refuses a setting is no remedy
	}
	if !passes {
		return nil, nil
	}
	until := e.trace.Events.Len()
	later := o.Fails && e.failed.earlier == 0
	if later {
		until = o.First.Event
	}
	limit, err := e.smallestLimit(s, lower, o)
	if err != nil {
		return nil, err
	}
	yes := true
	f := &Fix{
		Kind: FixSetting, Settings: s.String(), Export: s.Export(), PassesFailure: &yes, UntilEvent: &until,
		SmallestLimit: &limit, PeakReserved: &o.Reserved.Bytes, DriverMS: ms(o),
	}
	condition := ""
	if e.limits.low < limit && limit <= e.limits.high && e.limits.low < e.limits.high {
		condition = fmt.Sprintf(" if the limit was %s or more", units.Size(limit))
	}
	switch {
	case later:
		f.Detail = fmt.Sprintf("the request is served%s, but a later one fails, at event %s", condition, units.Count(int64(until)))
	case e.endsThere():
		f.Detail = "the request is served" + condition + "; the recording ends there, so nothing beyond it is proven"
	default:
		f.Detail = "the whole recording passes" + condition
	}
	return f, nil
}

// lowerBound is a limit below which no setting gets past the failure: the least
// that is allocated at some time until then.
func (e *explainer) lowerBound() (uint64, error) {
	if e.failed.earlier == 0 && e.event < e.trace.Events.Len() {
		return tune.LowerBound(e.ctx, e.program)
	}
	m, err := e.program.Hold(e.ctx, replay.Conditions{Settings: alloc.Tightest()}, e.failed.holdAt)
	if err != nil {
		return 0, err
	}
	return m.Totals().Allocated + tightest.Round(e.failed.call.Size), nil
}

// smallestLimit returns the lowest limit under which the recording passes with
// some settings. o is its outcome under the limit of the run, or without one.
func (e *explainer) smallestLimit(s settings.Settings, lower uint64, o *replay.Outcome) (uint64, error) {
	if e.failed.earlier == 0 && e.event < e.trace.Events.Len() {
		return e.program.SmallestLimit(e.ctx, s, lower, replay.Passed(o))
	}
	return bisect.New(lower, 0, alloc.SegmentUnit).Climb(func(limit uint64) (bool, error) {
		passes, _, err := e.failed.passes(e.ctx, replay.Conditions{Settings: s, Limit: limit})
		return passes, err
	})
}

func ms(o *replay.Outcome) *float64 {
	v := float64(o.DriverTime.Microseconds()) / 1e3
	return &v
}

// advice judges what PyTorch's message advises.
func (e *explainer) advice(found []Fix) {
	recorded := e.conditions(0).Settings
	const conf = "expandable_segments:True"
	switch {
	case recorded.ExpandableSegments:
		e.report.Notes = append(e.report.Notes, "PyTorch's message advises "+conf+", which is already on")
	case !slices.ContainsFunc(found, func(f Fix) bool { return f.Settings == conf }):
		e.report.Notes = append(e.report.Notes, "PyTorch's message advises "+conf+": the request fails with it, too")
	}
}

// moreMemory finds how much more memory the recorded settings need.
func (e *explainer) moreMemory() error {
	there, known := e.failed.availableUnder(e.limits.high)
	if !known {
		return nil
	}
	limit, err := e.memoryToPass(there.cap)
	if err != nil || limit <= there.bytes {
		return err
	}
	yes, more := true, limit-there.bytes
	fix := Fix{
		Kind: FixMemory, PassesFailure: &yes, UntilEvent: &e.event, SmallestLimit: &limit, Bytes: &more,
		Detail: fmt.Sprintf("more memory: the same settings serve the request from %s on, %s more", units.SizeUp(limit), units.SizeUp(more)),
	}
	switch {
	case there.cap && e.limits.low < e.limits.high:
		more = limit - e.limits.low
		fix.Detail = fmt.Sprintf("a higher limit: the same settings serve the request from %s on, at most %s more than now", units.SizeUp(limit), units.SizeUp(more))
	case there.cap:
		fix.Detail = fmt.Sprintf("a higher limit: the same settings serve the request from %s on, %s more", units.SizeUp(limit), units.SizeUp(more))
	}
	e.report.Fixes = append(e.report.Fixes, fix)
	return nil
}

// memoryToPass returns the lowest limit, or the least memory of a device without
// one, with which the recorded settings get past the failure.
func (e *explainer) memoryToPass(capped bool) (uint64, error) {
	r := bisect.New(e.failed.live+e.failed.rounded, 0, alloc.SegmentUnit)
	if capped && e.failed.earlier == 0 && e.event < e.trace.Events.Len() && e.endsThere() {
		return r.Climb(e.program.PassesUnder(e.ctx, e.conditions(0).Settings))
	}
	return r.Climb(func(bytes uint64) (bool, error) {
		c := e.conditions(bytes)
		if !capped {
			c.Limit, c.DeviceMemory = 0, bytes
		}
		passes, _, err := e.failed.passes(e.ctx, c)
		return passes, err
	})
}
