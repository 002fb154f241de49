package check

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// Measures are the values of a file that rules are about.
type Measures struct {
	reserved, allocated span // peaks in bytes
	limit               span // on reserved memory, as far as the file shows one
	notes               []string
}

// MeasureRun takes the values of a run. It replays the trace, because block sizes
// are in no event. The error is the context's.
func MeasureRun(ctx context.Context, r *run.Run) (*Measures, error) {
	t := r.Trace
	if t.Events.Len() == 0 {
		const why = "the file has no events, and peaks come from events (torch.cuda.memory._record_memory_history() records them)"
		s := timeline.NewState(t)
		return &Measures{
			reserved: atLeast(float64(s.Reserved), why), allocated: atLeast(float64(s.Allocated), why), limit: unknown(why),
		}, nil
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
		allocated: unknown(why),
		limit:     unknown("the file does not show a limit"),
	}
	m.reserved.at = eventText(peaks.Reserved.Event)
	if line.Exact {
		m.allocated = exactly(float64(peaks.Allocated.Value))
		m.allocated.at = eventText(peaks.Allocated.Event)
	}
	if line.Trace.Partial {
		const why = "the file ends within the events: later ones may go higher"
		for _, s := range []*span{&m.reserved, &m.allocated} {
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
	if n := len(peaks.OOMs); n > 0 {
		m.note("%s failed in the recording: its peaks are those of a run that ran out of memory", requests(n))
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
	return span{
		low: percent(m.reserved.low, m.allocated.high), high: percent(m.reserved.high, m.allocated.low),
		why: cmp.Or(m.reserved.why, m.allocated.why),
	}
}

func eventText(event int) string {
	if event < 0 {
		return "reached before the first event"
	}
	return "reached at event " + units.Count(int64(event))
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return units.Count(int64(n)) + " requests"
}

func (m *Measures) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// MeasureDump takes the values of a dump of memory_stats().
func MeasureDump(d *stats.Dump) *Measures {
	get := func(key string) span {
		if r, ok := d.Ranges[key]; ok {
			return fromRange(r)
		}
		if v, ok := d.Values[key]; ok && v >= 0 {
			return exactly(float64(v))
		}
		return unknown("the dump has no " + key)
	}
	return &Measures{
		reserved: get("reserved_bytes.all.peak"), allocated: get("allocated_bytes.all.peak"),
		limit: unknown("a memory_stats() dump does not show a limit"),
	}
}
