package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// VerifyTrace replays the trace of a snapshot under its own settings and
// compares every event and the final segments. What the file does not tell is
// recovered: the state at the beginning, the limit, the pools.
func VerifyTrace(ctx context.Context, t *trace.Trace) (*Result, error) {
	v := newTraceVerifier(t)
	p, err := v.best(ctx)
	if err != nil {
		return nil, err
	}
	return v.checked(ctx, p)
}

// checked is the result of a player, confirmed under the limits it allows.
func (v *traceVerifier) checked(ctx context.Context, p *player) (*Result, error) {
	r := v.result(p)
	if r.Identical && r.Limit.Max != 0 && p.config.limit == 0 {
		return r, v.confirm(ctx, p, r)
	}
	return r, nil
}

// confirm replays under both ends of the inferred limit: the engine itself must
// then refuse what was refused and serve what was served.
func (v *traceVerifier) confirm(ctx context.Context, p *player, r *Result) error {
	for _, limit := range []uint64{r.Limit.Min, r.Limit.Max} {
		c := p.config
		c.limit = limit
		q, err := v.attempt(ctx, c)
		if err != nil {
			return err
		}
		if q.diff != nil {
			q.describe()
			q.diff.What = fmt.Sprintf("under a limit of %d bytes, which the file allows: %s", limit, q.diff.What)
			r.First, r.Identical, r.IdenticalEvents = q.diff, false, q.pos
			return nil
		}
	}
	return nil
}

type traceVerifier struct {
	t      *trace.Trace
	start  *Start
	rows   *rows
	config playConfig
	pools  *poolMap // built when needed
	notes  []string
}

func newTraceVerifier(t *trace.Trace) *traceVerifier {
	v := &traceVerifier{t: t, start: Begin(t), rows: newRows(t)}
	v.notes = append(v.notes, v.start.Notes...)
	if skipped := t.Events.Len() - v.rows.Len(); skipped > 0 {
		v.notes = append(v.notes, fmt.Sprintf("%d events of kinds that PyTorch 2.11 does not have are left out: %v", skipped, t.Events.Others))
	}
	v.config = playConfig{start: v.start, total: deviceMemory(t, v.start), settings: t.Settings.Parsed}
	if !t.Settings.Known {
		v.config.settings = settings.Default()
		v.notes = append(v.notes, "the file has no allocator settings: the defaults are assumed")
	}
	if slices.ContainsFunc(t.Segments, func(s trace.Segment) bool { return s.Pool != alloc.PoolID{} }) {
		v.config.pools = newPoolMap(v.rows, v.start)
	}
	return v
}

// best plays the trace, and if it goes wrong tries what the file may have left
// unsaid: other pools, and the limit at which garbage was collected.
func (v *traceVerifier) best(ctx context.Context) (*player, error) {
	p, err := v.attempt(ctx, v.config)
	if err != nil || p.diff == nil {
		return v.unrefused(ctx, p, err)
	}
	if v.config.settings.GarbageCollectionThreshold > 0 {
		if q, err := v.searchLimit(ctx, p); err != nil {
			return nil, err
		} else if q.pos > p.pos || q.diff == nil {
			p = q
		}
	}
	return v.search(ctx, p)
}

// unrefused looks at a replay in which requests are refused that no limit
// explains, as more was granted at other times: where stacks do not tell, what
// was taken for a flush inside an allocation was an empty_cache before it.
func (v *traceVerifier) unrefused(ctx context.Context, p *player, err error) (*player, error) {
	if err != nil || p.dev.high >= p.dev.low {
		return p, err
	}
	c := p.config
	c.unrefused = true
	q, err := v.attempt(ctx, c)
	if err != nil || q.diff == nil {
		return q, err
	}
	return p, nil
}

func (v *traceVerifier) attempt(ctx context.Context, c playConfig) (*player, error) {
	p, err := newPlayer(v.rows, c)
	if err != nil {
		return nil, err
	}
	if err := p.play(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// The search for what a file leaves unsaid ends after so many attempts, or
// after replaying so many events.
const (
	maxReadings = 400
	maxReplayed = 100_000_000
)

// search looks for a reading of the trace under which the replay goes through,
// or else as far as possible: the attempt that got furthest is varied first, of
// equals the one that assumes least.
func (v *traceVerifier) search(ctx context.Context, p *player) (*player, error) {
	best, replayed := p, 0
	open := []*player{p}
	for tries := 0; len(open) > 0; {
		next := open[0]
		open = open[1:]
		for _, c := range v.readings(next) {
			if tries++; tries > maxReadings || replayed > maxReplayed {
				return best, nil
			}
			q, err := v.attempt(ctx, c)
			if err != nil {
				return nil, err
			}
			replayed += q.pos
			if q.diff == nil {
				return q, nil
			}
			if q.pos > best.pos {
				best = q
			}
			if q.pos >= next.pos {
				i, _ := slices.BinarySearchFunc(open, q, func(x, y *player) int {
					return cmp.Or(cmp.Compare(y.pos, x.pos), cmp.Compare(x.config.pools.inferred(), y.config.pools.inferred()), -1)
				})
				open = slices.Insert(open, i, q)
			}
		}
	}
	return best, nil
}

// readings are other ways to read the trace where the replay went wrong. A
// pending free may have completed when the allocation began or while it waited
// after finding nothing; a segment may belong to another pool.
func (v *traceVerifier) readings(p *player) []playConfig {
	var out []playConfig
	start, end := p.dev.Asked()
	for at := start; at < end; at++ {
		c := p.config
		c.waited = append(slices.Clone(c.waited), at)
		slices.Sort(c.waited)
		out = append(out, c)
	}
	pools := p.config.pools
	if pools == nil {
		if v.pools == nil {
			v.pools = newPoolMap(v.rows, v.start)
		}
		pools = v.pools
	}
	for _, m := range pools.options(p.guess) {
		c := p.config
		c.pools = m
		out = append(out, c)
	}
	return out
}

// searchLimit looks for a limit under which the garbage collector does what
// the trace shows. It runs whenever more than the threshold's share of the
// limit is reserved: under too low a limit it releases where the trace does
// not, under too high a one the trace releases where it does not.
func (v *traceVerifier) searchLimit(ctx context.Context, p *player) (*player, error) {
	low := max(v.peakReserved(), 1)
	high := uint64(float64(low)/v.config.settings.GarbageCollectionThreshold) + 1
	best, err := v.bisectLimit(ctx, p, low, high)
	if err != nil || best.diff != nil {
		return best, err
	}
	// What was refused narrows the limit down, too.
	if l := best.dev.limit(); l.Max != 0 && (best.config.limit < l.Min || best.config.limit > l.Max) {
		if q, err := v.bisectLimit(ctx, p, max(low, l.Min), min(high, l.Max)); err != nil || q.diff == nil {
			return q, err
		}
	}
	return best, nil
}

// bisectLimit looks for a limit between two others; it returns the attempt that
// got furthest, p included.
func (v *traceVerifier) bisectLimit(ctx context.Context, p *player, low, high uint64) (*player, error) {
	best := p
	for low <= high {
		c := v.config
		c.limit = low + (high-low)/2
		q, err := v.attempt(ctx, c)
		if err != nil {
			return nil, err
		}
		if q.diff == nil || q.pos > best.pos {
			best = q
		}
		switch {
		case q.diff == nil:
			return q, nil
		case !q.flushed && q.guess != nil && q.guess.got.Action == alloc.ActionSegmentFree:
			low = c.limit + 1
		default:
			high = c.limit - 1
		}
	}
	return best, nil
}

// peakReserved is the most memory that was reserved at any event.
func (v *traceVerifier) peakReserved() uint64 {
	var reserved uint64
	for _, s := range v.start.Segments {
		reserved += s.TotalSize
	}
	peak := reserved
	for i := range v.rows.Len() {
		size := v.t.Events.Size.At(v.rows.event(i))
		switch v.rows.action(i) {
		case alloc.ActionSegmentAlloc, alloc.ActionSegmentMap:
			reserved += size
			peak = max(peak, reserved)
		case alloc.ActionSegmentFree, alloc.ActionSegmentUnmap:
			reserved -= size
		}
	}
	return peak
}

func (v *traceVerifier) result(p *player) *Result {
	r := &Result{
		Kind: "snapshot", Events: v.rows.Len(), IdenticalEvents: p.pos, Segments: len(v.t.Segments),
		Start: v.start.Kind, Limit: p.dev.limit(), Notes: v.notes,
	}
	if limit, ok := p.a.Limit(); ok {
		r.CollectLimit = limit
		r.Notes = append(r.Notes, fmt.Sprintf("garbage is collected as under a limit of %d bytes", limit))
	}
	if n := p.pools.inferred(); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the pools of %d segments that were freed before the end are inferred", n))
	}
	if p.diff == nil && !v.t.Partial {
		want := make([]alloc.Segment, 0, len(v.t.Segments))
		for i := range v.t.Segments {
			want = append(want, toSegment(v.t.Device, &v.t.Segments[i]))
		}
		slices.SortFunc(want, byAddress)
		got := slices.DeleteFunc(p.a.Segments(), func(s alloc.Segment) bool { return s.Lost })
		if !requestedKnown(want) {
			forgetRequested(got)
			r.Notes = append(r.Notes, "the file does not tell the requested sizes of blocks: they are not compared")
		}
		if d := segmentDifference(want, got, v.start.Kind == StartRebuilt); d != nil {
			p.note(DiffSegment, d.what, d.want, d.got, d.addrs...)
		} else {
			r.SegmentsIdentical = true
		}
	}
	if v.start.Kind == StartUnknown {
		p.diff = &Difference{Kind: DiffEvent, What: "the trace cannot be replayed: it begins mid-run and ends before the state in the file"}
		r.Limit, r.IdenticalEvents = &Limit{}, 0
	}
	p.describe()
	r.First, r.Identical = p.diff, p.diff == nil
	stats := p.a.Stats()
	r.Stats = stats.Map()
	return r
}

// requestedKnown reports whether a file tells what was requested: old ones do
// not.
func requestedKnown(segments []alloc.Segment) bool {
	active := false
	for _, s := range segments {
		active = active || s.ActiveSize > 0
		if s.RequestedSize > 0 || slices.ContainsFunc(s.Blocks, func(b alloc.Block) bool { return b.RequestedSize > 0 }) {
			return true
		}
	}
	return !active
}

func forgetRequested(segments []alloc.Segment) {
	for i := range segments {
		segments[i].RequestedSize = 0
		for j := range segments[i].Blocks {
			segments[i].Blocks[j].RequestedSize = 0
		}
	}
}

// deviceMemory estimates the size of the device from the distance between
// expandable segments: each reserves addresses for nine eighths of it. It
// matters for nothing else.
func deviceMemory(t *trace.Trace, start *Start) uint64 {
	const (
		unknown = 256 << 30
		apart   = 4 << 30 // memory further apart is in different segments
	)
	var mapped []span64
	for i := range t.Events.Len() {
		switch t.Events.Action.At(i) {
		case alloc.ActionSegmentMap, alloc.ActionSegmentUnmap:
			mapped = append(mapped, span64{t.Events.Addr.At(i), t.Events.Addr.At(i) + t.Events.Size.At(i)})
		}
	}
	for _, s := range t.Segments {
		if s.Expandable {
			mapped = append(mapped, span64{s.Address, s.Address + s.TotalSize})
		}
	}
	for _, s := range start.Segments {
		if s.Expandable {
			mapped = append(mapped, span64{s.Address, s.Address + s.TotalSize})
		}
	}
	slices.SortFunc(mapped, func(x, y span64) int { return cmp.Compare(x.low, y.low) })
	gap, first, end := uint64(unknown)/8*9, uint64(0), uint64(0)
	for i, m := range mapped {
		if i == 0 {
			first = m.low
		} else if m.low > end && m.low-end > apart {
			gap = min(gap, m.low-first)
			first = m.low
		}
		end = max(end, m.high)
	}
	return (gap - 64<<20) / 9 * 8
}

// inferred is the number of segments whose pool is a guess.
func (m *poolMap) inferred() int {
	if m == nil {
		return 0
	}
	return len(m.guess)
}
