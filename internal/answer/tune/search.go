package tune

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// Options say what is searched for.
type Options struct {
	// Limit is the cap that the run has to live with; 0 if there is none.
	// Garbage collection is looked at only with one: PyTorch does it only then.
	Limit uint64
	// DeviceMemory is what the device has for the allocator; 0 is without end.
	DeviceMemory uint64
	// Budget is how long to search; 0 searches to the end.
	Budget time.Duration
	// Workers is how many runs are made at once; 0 is one for each core.
	Workers int
	// Progress is called now and then with the number of settings evaluated.
	Progress func(evaluated int)
}

// Candidate is a setting and what the recording would do under it.
type Candidate struct {
	Settings settings.Settings
	// PeakReserved and DriverTime are those of a run without a limit.
	PeakReserved uint64
	DriverTime   time.Duration
	// Need is the least memory with which the recording passes: the lowest limit
	// that nothing exceeds. Expandable segments are mapped in granules and may go
	// beyond a limit by a part of one. 0 if it was not looked for, because
	// another setting needs less.
	Need uint64
	// SmallestLimit is the lowest limit under which no request fails, whatever
	// is reserved then; known for the settings of a Result.
	SmallestLimit uint64
	// Limited is the run under the limit of the options; nil without one.
	Limited *replay.Outcome

	fails bool // without a limit: the device is too small
}

// Result is the end of a search.
type Result struct {
	Current     *Candidate // the recorded settings
	Recommended *Candidate // may be Current
	Reason      string
	Front       []*Candidate // by need
	// FrontComplete: every setting that was evaluated was held against the front.
	FrontComplete bool
	Evaluated     int
	// Finished reports whether the search came to its end within the budget.
	Finished bool
	// LowerBound is the peak of live bytes: no setting passes below it.
	LowerBound uint64
	Elapsed    time.Duration
}

// step is how far apart two limits are that can differ.
const step = alloc.SegmentUnit

// searchShare is how many tenths of the budget are for the search; the rest is
// for the front.
const searchShare = 8

// batch is how many candidates are compared with the same state of knowledge.
const batch = 32

// search is the state of a search.
type search struct {
	program *replay.Program
	options Options
	space   *space
	ctx     context.Context // ends with the budget

	current *Candidate
	all     []*Candidate
	best    uint64 // smallest need known
	bound   uint64
	count   atomic.Int64
}

// Search looks for the best settings. When the context ends it returns what is
// known so far; the error is then the context's, and the Result may be nil.
func Search(ctx context.Context, p *replay.Program, o Options) (*Result, error) {
	begin := time.Now()
	within, cancel := ctx, context.CancelFunc(func() {})
	if o.Budget > 0 {
		within, cancel = context.WithTimeout(ctx, o.Budget*searchShare/10)
	}
	defer cancel()
	s := &search{program: p, options: o, space: newSpace(p, o.Limit > 0), ctx: within}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	finished := s.stages()
	r, err := s.result(ctx)
	if err != nil {
		return nil, err
	}
	r.Finished = finished
	r.Elapsed = time.Since(begin)
	return r, context.Cause(ctx)
}

// conditions returns the conditions of a run under a limit, 0 for none.
func (s *search) conditions(c settings.Settings, limit uint64) replay.Conditions {
	return replay.Conditions{Settings: c, Limit: limit, DeviceMemory: s.options.DeviceMemory}
}

// start evaluates the recorded settings and finds the lower bound.
func (s *search) start(ctx context.Context) error {
	var err error
	if s.bound, err = LowerBound(ctx, s.program); err != nil {
		return err
	}
	current := s.program.Settings
	current.PerProcessMemoryFraction = 1 // the limit stands for it
	s.current = &Candidate{Settings: current}
	s.space.seen[normal(current)] = true
	if err := s.measure(ctx, s.current); err != nil {
		return err
	}
	s.best = math.MaxUint64
	if err := s.findNeed(ctx, s.current); err != nil {
		return err
	}
	if s.current.Need > 0 {
		s.best = s.current.Need
	}
	s.all = append(s.all, s.current)
	return nil
}

// stages makes the candidates. It reports whether it came to the end.
func (s *search) stages() bool {
	return s.evaluateAll(s.space.neighbours(s.space.clean())) &&
		s.evaluateAll(s.space.grid(coarseSplits, divisions[:4], segments[:1])) &&
		s.refine() &&
		s.evaluateAll(s.space.grid(splits, divisions, segments)) &&
		s.refine()
}

// evaluateAll evaluates candidates; it reports whether the budget sufficed.
func (s *search) evaluateAll(in []settings.Settings) bool {
	for chunk := range slices.Chunk(s.space.fresh(in), batch) {
		group := make([]*Candidate, len(chunk))
		for i, c := range chunk {
			group[i] = &Candidate{Settings: c}
		}
		if !s.evaluate(group) {
			return false
		}
	}
	return true
}

// starts is how many of the best settings are varied.
const starts = 6

// refine varies the best settings one value at a time, as long as that helps.
func (s *search) refine() bool {
	varied := map[*Candidate]bool{}
	for {
		before := s.best
		var next []settings.Settings
		for _, c := range s.leaders(starts) {
			if !varied[c] {
				varied[c] = true
				next = append(next, s.space.neighbours(c.Settings)...)
			}
		}
		if len(next) == 0 {
			return true
		}
		if !s.evaluateAll(next) {
			return false
		}
		if s.best == before {
			return true
		}
	}
}

// leaders returns the settings that need least.
func (s *search) leaders(n int) []*Candidate {
	known := slices.DeleteFunc(slices.Clone(s.all), func(c *Candidate) bool { return c.Need == 0 })
	slices.SortStableFunc(known, func(x, y *Candidate) int {
		return cmp.Or(cmp.Compare(x.Need, y.Need), cmp.Compare(x.PeakReserved, y.PeakReserved),
			cmp.Compare(x.DriverTime, y.DriverTime), cmp.Compare(changes(x.Settings), changes(y.Settings)))
	})
	return known[:min(n, len(known))]
}

// evaluate runs a group of candidates on all cores. Each is compared with the
// best limit from before the group.
func (s *search) evaluate(group []*Candidate) bool {
	best := s.best
	ok := make([]bool, len(group))
	_ = parallel.Each(s.ctx, s.options.Workers, len(group), func(i int) error { // ok keeps what matters of the errors
		err := s.one(group[i], best)
		ok[i] = err == nil
		return err
	})
	for i, c := range group {
		if !ok[i] {
			continue
		}
		s.all = append(s.all, c)
		if c.Need > 0 {
			s.best = min(s.best, c.Need)
		}
	}
	return s.ctx.Err() == nil
}

// one evaluates a candidate: its need only if that is below best, or near it if
// the settings are simple. An error is of the context, or says that the device
// refuses the settings.
func (s *search) one(c *Candidate, best uint64) error {
	if err := s.measure(s.ctx, c); err != nil {
		return err
	}
	if best < math.MaxUint64 {
		worth := best - min(best, step)
		if changes(c.Settings) <= 1 {
			worth = enough(best)
		}
		if passes, err := s.suffices(s.ctx, c, worth); err != nil || !passes {
			return err
		}
	}
	return s.findNeed(s.ctx, c)
}

// measure runs a candidate without a limit.
func (s *search) measure(ctx context.Context, c *Candidate) error {
	o, err := s.program.Run(ctx, s.conditions(c.Settings, 0))
	if err != nil {
		return err
	}
	c.PeakReserved, c.DriverTime, c.fails = o.Reserved.Bytes, o.DriverTime, o.Fails
	n := s.count.Add(1)
	if s.options.Progress != nil {
		s.options.Progress(int(n))
	}
	return nil
}

// floor returns the lowest limit that can pass.
func (s *search) floor() uint64 { return (s.bound + step - 1) / step * step }

// passes reports whether no request fails under a limit.
func (s *search) passes(ctx context.Context, c *Candidate, limit uint64) (bool, error) {
	o, err := s.program.Run(ctx, s.conditions(c.Settings, limit))
	return err == nil && !o.Fails, err
}

// suffices reports whether no request fails under a limit and no more than the
// limit is reserved.
func (s *search) suffices(ctx context.Context, c *Candidate, limit uint64) (bool, error) {
	if limit < s.floor() {
		return false, nil
	}
	if c.PeakReserved <= limit && c.plain() {
		return !c.fails, nil // the limit is never in the way
	}
	o, err := s.program.Run(ctx, s.conditions(c.Settings, limit))
	return err == nil && !o.Fails && o.Reserved.Bytes <= limit, err
}

// plain reports whether a limit that is never exceeded changes nothing. The
// collector works under any limit, and for expandable segments a limit is
// compared with more than is mapped.
func (c *Candidate) plain() bool {
	return c.Settings.GarbageCollectionThreshold == 0 && !c.Settings.ExpandableSegments
}

// findNeed finds what a candidate needs. If the device refuses even without a
// limit there is nothing to find.
func (s *search) findNeed(ctx context.Context, c *Candidate) error {
	if c.fails {
		return nil
	}
	high := (c.PeakReserved + step - 1) / step * step
	for !c.plain() {
		ok, err := s.suffices(ctx, c, high)
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if high > 4*c.PeakReserved {
			return nil
		}
		high += (high/8 + step) / step * step
	}
	var err error
	c.Need, err = bisect.New(s.floor(), high, step).Halve(func(limit uint64) (bool, error) { return s.suffices(ctx, c, limit) })
	return err
}

// findLimit finds the smallest limit of a candidate whose need is known.
func (s *search) findLimit(ctx context.Context, c *Candidate) error {
	if c.Need == 0 || c.SmallestLimit != 0 {
		return nil
	}
	floor := s.floor()
	if !c.plain() {
		floor = step // what is mapped may exceed a limit, even one below what is live
	}
	var err error
	c.SmallestLimit, err = bisect.New(floor, c.Need, step).Halve(func(limit uint64) (bool, error) { return s.passes(ctx, c, limit) })
	return err
}
