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
		q, err := v.under(ctx, p, limit)
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

// under replays as a player did, under a limit.
func (v *traceVerifier) under(ctx context.Context, p *player, limit uint64) (*player, error) {
	c := p.config
	c.limit = limit
	return v.attempt(ctx, c)
}

type traceVerifier struct {
	t        *trace.Trace
	start    *Start
	rows     *rows
	room     *room
	found    *reservations
	settings settings.Settings
	config   playConfig
	pools    *poolMap // built when needed
	notes    []string
}

func newTraceVerifier(t *trace.Trace) *traceVerifier {
	v := &traceVerifier{t: t, start: Begin(t), rows: newRows(t)}
	v.notes = append(v.notes, v.start.Notes...)
	if skipped := t.Events.Len() - v.rows.Len(); skipped > 0 {
		v.notes = append(v.notes, fmt.Sprintf("%d events of kinds that PyTorch 2.11 does not have are left out: %v", skipped, t.Events.Others))
	}
	v.settings = t.Settings.Parsed
	if !t.Settings.Known {
		v.settings = settings.Default()
		v.notes = append(v.notes, "the file has no allocator settings: the defaults are assumed")
	}
	v.room = newRoom(v.rows, v.start)
	v.found = findReservations(t, v.start, v.settings, v.room)
	v.config = playConfig{start: v.start, settings: v.settings, room: v.room}
	v.config.device(v.found, v.found.memory)
	v.config.settings.PerProcessMemoryFraction = 1 // of a device that nobody knows: the answers tell the limit
	if slices.ContainsFunc(t.Segments, func(s trace.Segment) bool { return s.Pool != alloc.PoolID{} }) {
		v.config.pools = newPoolMap(v.rows, v.start)
	}
	return v
}

// best plays the trace, and if it goes wrong tries what the file may have left
// unsaid: other pools, and the limit at which garbage was collected.
func (v *traceVerifier) best(ctx context.Context) (*player, error) {
	p, err := v.attemptLimited(ctx, v.config)
	if err == nil && p.diff != nil {
		p, err = v.otherDevice(ctx, p)
	}
	collects := v.settings.GarbageCollectionThreshold > 0
	if err != nil || p.diff == nil {
		if p, err = v.unrefused(ctx, p, err); err == nil && collects {
			return v.collected(ctx, p)
		}
		return p, err
	}
	if collects {
		if q, err := v.searchLimit(ctx, p); err != nil {
			return nil, err
		} else if q.pos > p.pos || q.diff == nil {
			p = q
		}
	}
	return v.search(ctx, p)
}

// otherDevice looks for another size of the device, among those that the
// addresses allow, with which the replay gets further.
func (v *traceVerifier) otherDevice(ctx context.Context, p *player) (*player, error) {
	for _, memory := range v.found.others {
		c := v.config
		c.device(v.found, memory)
		q, err := v.attemptLimited(ctx, c)
		if err != nil {
			return nil, err
		}
		if q.diff == nil || q.pos > p.pos {
			p, v.config = q, c
		}
		if q.diff == nil {
			break
		}
	}
	return p, nil
}

// attemptLimited plays the trace. Where the replay gets memory that is mapped
// already and the recorded run was refused, the driver had no say: a limit
// refused, and it is tried; or, where stacks do not tell, an empty_cache came
// before.
func (v *traceVerifier) attemptLimited(ctx context.Context, c playConfig) (*player, error) {
	p, err := v.attempt(ctx, c)
	if err != nil || p.granted == 0 {
		return p, err
	}
	best := p
	for q := p; q.granted > 0; {
		c.atMost = q.granted - 1
		next, err := v.attempt(ctx, c)
		if err != nil || next.diff == nil {
			return next, err
		}
		if next.pos <= q.pos {
			break
		}
		best, q = next, next
	}
	c.atMost, c.unrefused = 0, true
	q, err := v.attempt(ctx, c)
	if err != nil || q.pos > best.pos || q.diff == nil {
		return q, err
	}
	return best, nil
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

func (v *traceVerifier) result(p *player) *Result {
	r := &Result{
		Kind: "snapshot", Events: v.rows.Len(), IdenticalEvents: p.pos, Segments: len(v.t.Segments),
		Start: v.start.Kind, Limit: p.dev.limit(), Notes: v.notes,
	}
	if limit := p.config.limit; limit != 0 {
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
	if p.diff != nil && v.start.Kind == StartRebuilt && v.settings.GarbageCollectionThreshold > 0 {
		r.Notes = append(r.Notes, "which segments the garbage collector takes depends on how long they were unused, and of those cached before the first event the file does not tell")
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

// inferred is the number of segments whose pool is a guess.
func (m *poolMap) inferred() int {
	if m == nil {
		return 0
	}
	return len(m.guess)
}
