package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Options are what is known beside a trace, and what the caller wants.
type Options struct {
	// Start is the state at the first event; if nil, Run finds it.
	Start *start.State
	// NoSizes leaves the sizes of blocks out: they take 4 bytes for each event.
	NoSizes bool
	// Progress is called now and then with the number of events done.
	Progress func(done, total int)
}

// Verified is a trace that went through the engine, and what the engine knows
// of it that the trace does not show.
type Verified struct {
	Trace  *trace.Trace
	Start  *start.State
	Result *replay.Result
	// Sizes are those of blocks; nil unless every event came out again and they are
	// wanted.
	Sizes *Sizes
	// OOMs has what was free at the first failed requests, as far as the replay
	// went.
	OOMs []FreeAtOOM

	program func() *replay.Program
}

// Program returns the calls that the replay shows. They are read off the events
// when they are first asked for.
func (v *Verified) Program() *replay.Program { return v.program() }

// Run replays a trace under its own settings and compares every event and the
// final segments. What the file lacks is recovered: the state at the
// beginning, the limit, the pools, the sizes of blocks.
//
// The error is the context's, or says why the state at the beginning cannot be
// restored. A trace that the engine does not reproduce is no error: the Result
// says where they part.
func Run(ctx context.Context, t *trace.Trace, o Options) (*Verified, error) {
	v := newVerifier(t, o)
	p, err := v.bestVersion(ctx)
	if err != nil {
		return nil, err
	}
	r, err := v.checked(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &Verified{Result: r, Trace: t, Start: v.start, OOMs: p.ooms}
	if p.sizes != nil && v.start.Kind != start.Unknown {
		p.sizes.upTo(t.Events.Len())
		out.Sizes = p.sizes
	}
	read := v.reading(p)
	out.program = sync.OnceValue(func() *replay.Program {
		program := read.program()
		program.Check = r
		return program
	})
	return out, nil
}

// checked is the result of a player, confirmed under the limits it allows where
// these do more than refuse.
func (v *verifier) checked(ctx context.Context, p *player) (*replay.Result, error) {
	r := v.result(p)
	if r.Identical && r.Limit.Max != 0 && p.config.limit == 0 && !v.limitOnlyRefuses() {
		return r, v.confirm(ctx, p, r)
	}
	return r, nil
}

// limitOnlyRefuses reports whether a limit has no effect but to refuse segments
// (spec 3.2). Then the range that the answers leave is right by its making: a
// limit within it refuses what the device refused and nothing else. The collector
// also works below a limit (spec 7.3), and what an expandable segment asks the
// device for is not what is compared with the limit.
func (v *verifier) limitOnlyRefuses() bool {
	return v.settings.GarbageCollectionThreshold == 0 && !v.settings.ExpandableSegments &&
		!slices.ContainsFunc(v.start.Segments, func(s alloc.Segment) bool { return s.Expandable })
}

// confirm replays under both ends of the inferred limit: the engine itself must
// then refuse what was refused and serve what was served.
func (v *verifier) confirm(ctx context.Context, p *player, r *replay.Result) error {
	for _, limit := range []uint64{r.Limit.Min, r.Limit.Max} {
		c := p.config
		c.limit, c.sizes = limit, false
		q, err := v.play(ctx, c)
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

type verifier struct {
	trace    *trace.Trace
	start    *start.State
	rows     *rows
	memory   *deviceMemory
	found    *reservations
	settings settings.Settings
	config   playConfig
	pools    *poolMap // built when needed
	notes    []string
	progress func(done, total int)

	most, spent work    // by the search
	furthest    *player // so far
	plain       *player // the first attempt, if it was made already
}

func newVerifier(t *trace.Trace, o Options) *verifier {
	v := &verifier{trace: t, start: o.Start, rows: newRows(t), progress: o.Progress, most: work{SearchReplays, SearchEvents}}
	if v.start == nil {
		v.start = start.Find(t)
	}
	v.notes = append(v.notes, v.start.Notes...)
	if skipped := t.Events.Len() - v.rows.Len(); skipped > 0 {
		v.notes = append(v.notes, fmt.Sprintf("%d events of kinds that PyTorch 2.11 does not have are left out: %v", skipped, t.Events.Others))
	}
	v.settings = t.Settings.Parsed
	if !t.Settings.Known {
		v.settings = settings.Default()
		v.notes = append(v.notes, "the file has no allocator settings: the defaults are assumed")
	}
	v.memory = newDeviceMemory(v.rows, v.start)
	v.found = findReservations(t, v.start, v.settings, v.memory)
	v.config = playConfig{version: t.Writer.Assumed(), start: v.start, settings: v.settings, memory: v.memory, sizes: !o.NoSizes}
	v.config.setDevice(v.found, v.found.memory)
	v.config.settings.PerProcessMemoryFraction = 1 // of an unknown device: the answers show the limit
	if v.rows.pooled() || slices.ContainsFunc(t.Segments, func(s trace.Segment) bool { return s.Pool != alloc.PoolID{} }) {
		v.config.pools = newPoolMap(v.rows, v.start)
	}
	return v
}

func (v *verifier) result(p *player) *replay.Result {
	r := &replay.Result{
		Kind: "snapshot", Events: v.rows.Len(), IdenticalEvents: p.pos, Segments: len(v.trace.Segments),
		Start: v.start.Kind, Limit: p.device.limit(), Notes: v.notes, Writer: v.trace.Writer, Version: p.config.version,
	}
	if limit := p.config.limit; limit != 0 {
		r.CollectLimit = limit
		r.Notes = append(r.Notes, fmt.Sprintf("garbage is collected as under a limit of %d bytes", limit))
	}
	if n := p.pools.inferred(); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the pools of %d segments that were freed before the end are inferred", n))
	}
	if p.diff == nil && !v.trace.Partial {
		want := make([]alloc.Segment, 0, len(v.trace.Segments))
		for i := range v.trace.Segments {
			want = append(want, v.trace.Segments[i].ToEngine(v.trace.Device))
		}
		slices.SortFunc(want, func(x, y alloc.Segment) int { return cmp.Compare(x.Address, y.Address) })
		got := slices.DeleteFunc(p.allocator.Segments(), func(s alloc.Segment) bool { return s.Lost })
		if !requestedKnown(want) {
			forgetRequested(got)
			r.Notes = append(r.Notes, "the file does not tell the requested sizes of blocks: they are not compared")
		}
		if d := CompareSegments(want, got, v.start.Kind == start.Rebuilt); d != nil {
			p.note(replay.DiffSegment, d.What, d.Want, d.Got, d.Addrs...)
		} else {
			r.SegmentsIdentical = true
		}
	}
	if p.diff != nil && v.start.Kind == start.Rebuilt && v.settings.GarbageCollectionThreshold > 0 {
		r.Notes = append(r.Notes, "which segments the garbage collector takes depends on how long they were unused, and of those cached before the first event the file does not tell")
	}
	if v.start.Kind == start.Unknown {
		p.diff = &replay.Difference{Kind: replay.DiffEvent, What: "the trace cannot be replayed: it begins mid-run and ends before the state in the file"}
		r.Limit, r.IdenticalEvents = &replay.Limit{}, 0
	}
	p.describe()
	r.First, r.Identical = p.diff, p.diff == nil
	stats := p.allocator.Stats()
	r.Stats = stats.Map()
	return r
}

// requestedKnown reports whether a file has requested sizes: old ones do not.
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
