package check

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// Measures are the values of a file that rules are about.
type Measures struct {
	reserved, allocated span // peaks in bytes
	limit               span // on reserved memory, as far as the file shows one
	leak                span // bytes that a step leaves behind
	retries             span // releases of the cache to make room
	ooms                span // failed requests
	notes               []string
}

// MeasureRun takes the values of a run. It replays the trace, because block sizes
// are in no event. The error is the context's.
func MeasureRun(ctx context.Context, r *run.Run) (*Measures, error) {
	t := r.Trace
	if t.Events.Len() == 0 {
		const why = "the file has no events, and peaks come from events (torch.cuda.memory._record_memory_history() records them)"
		const whyNone = "the file has no events, which show them (torch.cuda.memory._record_memory_history() records them)"
		s := timeline.NewState(t)
		m := &Measures{
			reserved: atLeast(float64(s.Reserved), why), allocated: atLeast(float64(s.Allocated), why),
			limit: unknown(why), leak: unknown(whyNone), retries: unknown(whyNone), ooms: unknown(whyNone),
		}
		m.counted(r.Facts, t.Device)
		return m, nil
	}
	var (
		seen *verify.Verified
		why  error
	)
	if !t.Host {
		seen, why = r.Verified(ctx)
	}
	h, err := r.History(ctx)
	if err != nil {
		return nil, err
	}
	m := measureLine(h.Timeline, h.Peaks, seen, why)
	if s := timeline.NewState(t); s.Segments > 0 { // a peak is no lower than the end
		m.reserved.raise(float64(s.Reserved))
		m.allocated.raise(float64(s.Allocated))
	}
	m.counted(r.Facts, t.Device)
	if limit := whatif.RecordedLimit(r.Facts, t.Device); limit != nil && float64(*limit) >= m.limit.low && float64(*limit) <= m.limit.high {
		m.limit = exactly(float64(*limit))
	}
	return m, nil
}

// measureLine takes the values of a timeline. seen is nil without a replay; err
// is why there was none.
func measureLine(line *timeline.Timeline, peaks *timeline.Peaks, seen *verify.Verified, err error) *Measures {
	why := noReplay(line, seen, err)
	m := &Measures{
		reserved:  exactly(float64(peaks.Reserved.Value)),
		allocated: unknown(why), retries: unknown(why),
		limit: unknown("the file does not show a limit"), leak: unknown("steps were not looked for"),
		ooms: failed(line.Trace, peaks.OOMs),
	}
	m.reserved.at = eventText(peaks.Reserved.Event)
	if line.Exact {
		m.allocated = exactly(float64(peaks.Allocated.Value))
		m.allocated.at = eventText(peaks.Allocated.Event)
	}
	if line.Exact && seen != nil {
		m.retries = exactly(float64(seen.Result.Stats["num_alloc_retries"]))
	}
	if line.Trace.Partial {
		const why = "the file ends within the events: later ones may go higher"
		for _, s := range []*span{&m.reserved, &m.allocated, &m.retries, &m.ooms} {
			if s.exact() {
				*s = span{low: s.low, high: math.Inf(1), why: why, at: s.at}
			}
		}
	}
	if seen != nil && seen.Result.Limit.Max != 0 {
		m.limit = span{low: float64(seen.Result.Limit.Min), high: float64(seen.Result.Limit.Max), why: "the file shows only a range"}
	}
	if line.Start.Kind == start.Rebuilt {
		m.note("the recording starts mid-run: peaks are those since its first event, and include what was held before")
	}
	return m
}

// noReplay says why there are no sums of block sizes.
func noReplay(line *timeline.Timeline, seen *verify.Verified, err error) string {
	switch {
	case line.Trace.Host:
		return "host memory has another allocator, which is not replayed, and block sizes come from the replay"
	case err != nil:
		return fmt.Sprintf("the events cannot be replayed (%v), and block sizes come from the replay", err)
	case seen != nil && line.AtLeast:
		return "the file begins mid-run and ends within the events, so they cannot be replayed, and block sizes come from the replay"
	case seen != nil:
		return fmt.Sprintf("the replay diverges from the recording at event %s, and block sizes come from the replay (ashlar verify shows how)",
			units.Count(int64(seen.Result.IdenticalEvents)))
	}
	return "the events were not replayed"
}

// fragmentation returns 1 - peak allocated / peak reserved, in percent.
func (m *Measures) fragmentation() span {
	for _, s := range []span{m.reserved, m.allocated} {
		if math.IsInf(s.low, -1) || math.IsInf(s.high, 1) {
			return unknown(s.why)
		}
	}
	percent := func(reserved, allocated float64) float64 {
		f := timeline.PeakFragmentation(uint64(reserved), uint64(allocated))
		if f == nil {
			return 0 // nothing is held in vain
		}
		return 100 * *f
	}
	v := span{
		low: percent(m.reserved.low, m.allocated.high), high: percent(m.reserved.high, m.allocated.low),
		why: cmp.Or(m.reserved.why, m.allocated.why),
	}
	if v.exact() && m.reserved.low > 0 {
		v.at = fmt.Sprintf("peaks %s allocated, %s reserved", amount(m.allocated.low, Bytes), amount(m.reserved.low, Bytes))
	}
	return v
}

// failed counts the requests that failed in a trace.
func failed(t *trace.Trace, ooms []timeline.EventTotals) span {
	v := exactly(float64(len(ooms)))
	if len(ooms) == 0 {
		return v
	}
	last := ooms[len(ooms)-1].Index
	v.at = "at event " + units.Count(int64(last))
	if len(ooms) > 1 {
		v.at = "the last " + v.at
	}
	if whatif.WasCaught(t, last) == nil {
		v.at += ", which ends the run"
	}
	return v
}

// counted takes over what the recorder counted beside the events: over the whole
// life of the process, which a recording need not cover.
func (m *Measures) counted(f *recorder.Facts, device int) {
	if f == nil {
		return
	}
	if d := f.MemoryStats[device]; d != nil {
		if n, ok := d.Values["num_alloc_retries"]; ok {
			m.retries.count(n)
		}
		if n, ok := d.Values["num_ooms"]; ok {
			m.ooms.count(n)
		}
	}
	if f.Reason == recorder.OOM && f.Device != nil && *f.Device == device && m.ooms.low < 1 {
		m.ooms = span{low: 1, high: 1, at: "the recorder was called for it"}
	}
}

// measureLeak takes what steps leave behind. The error is the context's.
func (m *Measures) measureLeak(ctx context.Context, r *run.Run) error {
	switch {
	case r.Events() == 0: // nothing is known
		return nil
	case r.Trace.Host:
		m.leak = unknown("steps are found by the events of a device")
		return nil
	}
	a, err := r.Analysis(ctx)
	if err != nil {
		return err
	}
	if n := a.Steps.Complete(); n < findings.LeakSteps {
		m.leak = unknown(fmt.Sprintf("the file has %d of the %d complete steps that it takes to see a leak", n, findings.LeakSteps))
		return nil
	}
	f, err := r.Findings(ctx)
	if err != nil {
		return err
	}
	m.leak = exactly(0)
	for _, l := range f.Leaks {
		m.leak.low += float64(l.BytesPerStep)
	}
	m.leak.high = m.leak.low
	if len(f.Leaks) > 0 {
		m.leak.at = "kept memory has no call stack"
		if site, ok := timeline.SiteOf(r.Trace, f.Leaks[0].Stack); ok {
			m.leak.at = "most of it allocated at " + site.String()
		}
	}
	return nil
}

func eventText(event int) string {
	if event < 0 {
		return "reached before the first event"
	}
	return "reached at event " + units.Count(int64(event))
}

func (m *Measures) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// MeasureDump takes the values of a dump of memory_stats(): peaks and counters.
// Messages stand beside it in the file.
func MeasureDump(d *stats.Dump, messages int) *Measures {
	get := func(key string) span {
		if r, ok := d.Ranges[key]; ok {
			return fromRange(r)
		}
		if v, ok := d.Values[key]; ok && v >= 0 {
			return exactly(float64(v))
		}
		return unknown("the dump has no " + key)
	}
	m := &Measures{
		reserved: get("reserved_bytes.all.peak"), allocated: get("allocated_bytes.all.peak"),
		limit: unknown("a memory_stats() dump does not show a limit"), leak: unknown("a memory_stats() dump has no steps: give a snapshot with events"),
		retries: get("num_alloc_retries"), ooms: get("num_ooms"),
	}
	if messages > 0 {
		m.ooms.count(int64(messages))
	}
	return m
}

// MeasureMessages takes the one value that n messages of a kind have: how many
// requests failed.
func MeasureMessages(kind input.Kind, n int) *Measures {
	none := unknown(kind.Words() + " has no peaks and no steps: give a memory snapshot or a memory_stats() dump")
	v := exactly(float64(n))
	return &Measures{reserved: none, allocated: none, limit: none, leak: none, retries: none, ooms: v}
}
