package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/prognosis"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
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

// fixes finds what carries the run, or at least serves the request, and puts it in
// the order in which a person would try it.
func (j *judge) fixes() error {
	for _, find := range []func() error{j.emptyCache, j.giveUpPools, j.settings, j.code, j.moreMemory} {
		if err := find(); err != nil {
			return err
		}
	}
	slices.SortStableFunc(j.report.Fixes, func(x, y Fix) int { return cmp.Compare(j.rank(&x), j.rank(&y)) })
	return j.overflow()
}

// rank orders fixes: what carries the run before what carries a step, that before
// what only serves the request; among equals a line to export before a change of
// the code. What mends the cause comes before what only postpones it, and more
// memory last.
func (j *judge) rank(f *Fix) int {
	cause := j.report.Cause
	setting := f.Kind == FixSetting
	at := 30
	if f.Carries != nil {
		switch f.Carries.Kind {
		case prognosis.Steady:
			at = 10
		case prognosis.Step, prognosis.Steps:
			at = 20
		}
	}
	switch {
	case f.Kind == FixMemory:
		return 100
	case cause == Leak && !setting && f.Carries != nil, cause == SharedDevice && f.Kind == FixOthers:
		at = 0
	case f.Kind == FixEmptyCache || f.Kind == FixDel:
		at = 20 // what is stranded becomes free, not only for this request
	case setting && at > 10 && (cause == Capacity || cause == Spike):
		at += 20
	}
	if !setting {
		at++
	}
	return at
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
	fix := Fix{Kind: FixEmptyCache, Code: "torch.cuda.empty_cache()", PassesFailure: &yes, UntilEvent: &e.event}
	switch {
	case served && e.failed.reproduced && routed:
		fix.Bytes = &e.failed.releasable
		fix.Detail = fmt.Sprintf("before the use_mem_pool block or the capture: it releases %s, and the request is served", units.Size(e.failed.releasable))
		e.report.Fixes = append(e.report.Fixes, fix)
	case served && e.failed.reproduced:
		fix.Bytes = &e.failed.pending
		fix.Detail = fmt.Sprintf("before the request: it waits for the other streams, which frees the %s that they held, and the request is served",
			units.Size(e.failed.pending))
		e.report.Fixes = append(e.report.Fixes, fix)
	case !routed:
		e.report.Notes = append(e.report.Notes, "torch.cuda.empty_cache() just before the request does not help: PyTorch had already released its cache")
	}
	return nil
}

// giveUpPools tries to release what private pools hold unused.
func (e *explainer) giveUpPools() error {
	f := e.failed
	there, known := f.availableUnder(e.limits.high)
	if e.report.Trigger != Pools || f.call.Pool != (alloc.PoolID{}) || !known || f.free.privateWhole == 0 ||
		f.reserved-f.free.privateWhole+f.segment > there.bytes {
		return nil
	}
	yes := true
	e.report.Fixes = append(e.report.Fixes, Fix{
		Kind: FixDel, PassesFailure: &yes, UntilEvent: &e.event, Bytes: &f.free.privateWhole, Code: "del pool, graph",
		Detail: fmt.Sprintf("delete the MemPools or graphs before the call: that releases %s that they hold unused, and the request is served",
			units.Size(f.free.privateWhole)),
	})
	return nil
}

// many is the number of calls from which on only what is likely to help is tried,
// unless everything is asked for.
const many = 300_000

// settings continues the run under each remedy.
func (j *judge) settings() error {
	of := answer.AllocatorOf(j.trace)
	list := slices.DeleteFunc(Remedies(j.program.Settings), func(s settings.Settings) bool {
		use, _ := of.Takes(s)
		return use == answer.Never
	})
	if !j.Full && j.program.Len() > many {
		list = list[:1]
	}
	fixes := make([]*Fix, len(list))
	if err := parallel.Each(j.ctx, parallel.AllCores, len(list), func(i int) (err error) {
		fixes[i], err = j.setting(list[i])
		return err
	}); err != nil {
		return err
	}
	var found []Fix
	for i, f := range fixes {
		if f == nil {
			continue
		}
		var use answer.Use
		if use, f.Requires = of.Takes(list[i]); use == answer.Later {
			j.report.AfterUpgrade = append(j.report.AfterUpgrade, *f)
			continue
		}
		found = append(found, *f)
	}
	j.report.Fixes = append(j.report.Fixes, found...)
	j.advice(slices.Concat(found, j.report.AfterUpgrade))
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

// setting tries one; nil if it does not help.
func (j *judge) setting(s settings.Settings) (*Fix, error) {
	c := j.failed.whole(j.conditions(j.limits.high))
	c.Settings = s
	passes, o, err := j.failed.passes(j.ctx, c)
	if err != nil {
		return nil, j.ctx.Err() // a device that refuses a setting is no remedy
	}
	if !passes {
		return nil, nil
	}
	f := &Fix{Kind: FixSetting, Settings: s.String(), Export: answer.AllocatorOf(j.trace).Export(s), PeakReserved: &o.Reserved.Bytes, DriverMS: ms(o)}
	if done, err := j.carry(f, j.forecast, c); !done || err != nil {
		return nil, err
	}
	if j.Full || j.program.Len() <= many {
		least, err := j.lowerBound()
		if err != nil {
			return nil, err
		}
		limit, err := j.smallestLimit(s, least, o)
		if err != nil {
			return nil, err
		}
		f.SmallestLimit = &limit
	}
	return f, nil
}

// carry says how far a fix carries the run, at both ends of the limit's range. It
// is no fix if the step that failed still dies.
func (j *judge) carry(f *Fix, x *prognosis.Prognosis, c replay.Conditions) (bool, error) {
	yes, until := true, j.trace.Events.Len()
	f.PassesFailure, f.UntilEvent = &yes, &until
	if !j.endsThere() {
		f.Carries = &prognosis.Carries{Kind: prognosis.Unknown, RestsOn: "the recording goes on after the failure"}
		f.Detail = "the request is served"
		return true, nil
	}
	carries, err := x.Under(j.ctx, c)
	if err != nil || carries.Fails() {
		return false, err
	}
	f.Carries = &carries
	f.Detail = words(&carries)
	if low := j.limits.low; low < j.limits.high && c.Limit == j.limits.high {
		from, err := j.carriesFrom(x, c, carries.Kind)
		if err != nil {
			return false, err
		}
		if from > low {
			f.Detail += fmt.Sprintf(", if the limit was at least %s", units.SizeUp(from))
		}
	}
	return true, nil
}

// carriesFrom returns the lowest limit of the range from which on a fix carries as
// far as at its high end.
func (j *judge) carriesFrom(x *prognosis.Prognosis, c replay.Conditions, kind string) (uint64, error) {
	r := bisect.New(j.limits.low, j.limits.high, alloc.SegmentUnit)
	return r.Climb(func(limit uint64) (bool, error) {
		at := c
		at.Limit = limit
		carries, err := x.Under(j.ctx, at)
		return err == nil && carries.Kind == kind && !carries.Fails(), err
	})
}

// words says how far a run gets.
func words(c *prognosis.Carries) string {
	switch {
	case c.Kind == prognosis.Steady:
		return "the job runs on, as long as steps are no larger than those seen"
	case c.Kind == prognosis.Step:
		return "this step ends; later ones may fail again"
	case c.Kind == prognosis.Steps && *c.Steps == 1:
		return "this step ends, the next one dies"
	case c.Kind == prognosis.Steps:
		return fmt.Sprintf("about %s more steps, then it dies again", units.Count(int64(*c.Steps)))
	}
	return "the request is served; what follows is not known"
}

// lowerBound is a limit below which no setting gets past the failure: the least
// that is allocated at some time until then.
func (e *explainer) lowerBound() (uint64, error) {
	if e.failed.earlier == 0 && e.event < e.trace.Events.Len() {
		bytes, _ := e.program.PeakLive()
		return bytes, nil
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

// moreMemory finds how much more memory carries the run with the recorded
// settings.
func (j *judge) moreMemory() error {
	if !j.known || j.report.Cause == AbsurdRequest {
		return nil
	}
	limit, err := j.memoryToPass(j.there.cap)
	if err != nil || limit <= j.there.bytes {
		return err
	}
	yes, more := true, limit-j.there.bytes
	fix := Fix{Kind: FixMemory, PassesFailure: &yes, UntilEvent: &j.event, SmallestLimit: &limit, Bytes: &more}
	c := j.conditions(limit)
	if !j.there.cap {
		c.Limit, c.DeviceMemory = 0, limit
	}
	carries, err := j.forecast.Under(j.ctx, c)
	if err != nil {
		return err
	}
	fix.Carries = &carries
	what := "more memory"
	if j.there.cap {
		what = "a higher limit"
	}
	fix.Detail = fmt.Sprintf("%s, %s or more: %s", what, units.SizeUp(limit), words(&carries))
	j.report.Fixes = append(j.report.Fixes, fix)
	return nil
}

// memoryToPass returns the lowest limit, or the least memory of a device without
// one, with which the recorded settings end the step that failed, or get past the
// request if it is not known how the step goes on.
func (j *judge) memoryToPass(capped bool) (uint64, error) {
	x, f := j.forecast, j.failed
	step := uint64(alloc.SegmentUnit)
	if !j.Full && j.program.Len() > many {
		step *= 64 // a replay takes long, and nobody buys memory by the segment
	}
	r := bisect.New(max(x.Need, j.there.bytes), 0, step)
	return r.Climb(func(bytes uint64) (bool, error) {
		c := j.conditions(bytes)
		if !capped {
			c.Limit, c.DeviceMemory = 0, bytes
		}
		carries, err := x.Under(j.ctx, c)
		if err != nil || carries.Kind != prognosis.Unknown {
			return !carries.Fails(), err
		}
		passes, _, err := f.passes(j.ctx, c)
		return passes, err
	})
}
