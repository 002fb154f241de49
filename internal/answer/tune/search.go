package tune

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/vary"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Options say what is searched for.
type Options struct {
	// Goal is what counts; empty is the smallest limit if there is a limit, and
	// the least reserved memory if there is none.
	Goal Goal
	// Limit is the cap that the run has to live with; 0 if there is none.
	// Garbage collection is looked at only with one: PyTorch does it only then.
	Limit uint64
	// DeviceMemory is what the device has for the allocator; 0 is without end.
	DeviceMemory uint64
	// Work is how many calls the search may replay; 0 is the usual number.
	Work int64
	// Budget cuts the search off; 0 never does.
	Budget time.Duration
	// Workers is how many runs are made at once; 0 is one for each core.
	Workers int
	// Evaluate tries batches of settings elsewhere; nil tries them here. What it
	// fails to try is tried here.
	Evaluate Evaluator
	// Progress is called now and then with the number of settings evaluated.
	Progress func(evaluated int)
}

// Candidate is a setting and what the run would do under it.
type Candidate struct {
	Settings settings.Settings
	// PeakReserved, DriverTime and Warm, the driver's work after the warm-up, are
	// those of a run without a limit.
	PeakReserved uint64
	DriverTime   time.Duration
	Warm         replay.DriverWork
	// Need is the least memory with which the recording passes: the lowest limit
	// that nothing exceeds. Expandable segments are mapped in granules and may go
	// beyond a limit by a part of one. 0 if there is none.
	Need uint64
	// SmallestLimit is the lowest limit under which no request fails, whatever
	// is reserved then.
	SmallestLimit uint64
	// Limited is the run under the limit of the options; nil without one.
	Limited *replay.Outcome
	// Worst is the variation on which it does worst; nil if there is none.
	Worst *Worst

	figures figures // on the recording
	score   score
	scored  bool
}

// Worst is what settings do on a variation of the run.
type Worst struct {
	Variation string
	// Value is the goal's figure there, bytes or calls; Recorded is that of the
	// recorded settings. Either is 0 with Fails or RecordedFails.
	Value, Recorded      uint64
	Fails, RecordedFails bool
}

// Result is the end of a search.
type Result struct {
	Goal        Goal
	Current     *Candidate // the recorded settings
	Recommended *Candidate // may be Current
	// Others are settings that were tried on the variations too, best first:
	// expandable segments alone, and what came next.
	Others []*Candidate
	// AfterUpgrade is better than Recommended, but has a key that what wrote the
	// recording does not know; nil if nothing is.
	AfterUpgrade *Candidate
	// Variations is how many there are beside the recording.
	Variations int
	Evaluated  int
	// Finished reports whether all settings were tried; CutOff whether time, not
	// the counted work, ended the search: then another one may end otherwise.
	Finished, CutOff bool
	// LowerBound is the peak of live bytes: no setting passes below it.
	LowerBound uint64
	// Span is the recorded time after the warm-up; 0 if it is not known.
	Span    time.Duration
	Elapsed time.Duration
}

const (
	// step is how far apart two limits are that can differ.
	step = alloc.SegmentUnit
	// batch is how many candidates are compared with the same state of knowledge.
	batch = 32
	// usualWork is how many calls are replayed in a search, and usualRuns how many
	// runs at least.
	usualWork, usualRuns = 80e6, 64
	// seed makes the variations the same every time.
	seed = 1
)

// search is the state of a search.
type search struct {
	program *replay.Program
	options Options
	goal    Goal
	space   *space
	span    time.Duration // recorded, after the warm-up
	busy    time.Duration // of it, the driver with the recorded settings
	allowed time.Duration // that the driver may be busy for longer

	courses []*course // the recording first
	keep    *Candidate
	expand  *Candidate
	all     []*Candidate
	best    float64 // the least value known of the goal on the recording

	work     int64        // calls that may be replayed in the search, and half as many in the finals
	enough   int64        // replayed when the search ends
	replayed atomic.Int64 // calls
	count    atomic.Int64 // settings
}

// Search looks for the settings that serve a run best. When the context ends it
// returns what is known so far; the error is then the context's, and the Result
// may be nil.
func Search(ctx context.Context, of *run.Checked, o Options) (*Result, error) {
	steps, err := of.Steps(ctx)
	if err != nil {
		return nil, err
	}
	return searchSteps(ctx, of.Program, steps.Ranges(), o)
}

// searchSteps searches for the best settings of a program with these steps.
func searchSteps(ctx context.Context, p *replay.Program, steps [][2]int, o Options) (*Result, error) {
	begin := time.Now()
	within, cancel := ctx, context.CancelFunc(func() {})
	if o.Budget > 0 {
		within, cancel = context.WithTimeout(ctx, o.Budget)
	}
	defer cancel()
	s := &search{program: p, options: o, goal: o.Goal.or(o.Limit), space: newSpace(p, o.Limit > 0), work: o.Work}
	if s.work == 0 {
		s.work = max(usualWork, usualRuns*int64(p.Len()))
	}
	s.setAllowed(steps)
	if err := s.start(ctx, steps); err != nil {
		return nil, err
	}
	s.vary(within, steps)
	s.scoreKnown()
	finished := s.stages(within)
	s.finals(within)
	later := s.afterUpgrade(within)
	r, err := s.result(ctx, later)
	if err != nil {
		return nil, err
	}
	r.CutOff = within.Err() != nil
	r.Finished = finished && !r.CutOff
	r.Elapsed = time.Since(begin)
	return r, context.Cause(ctx)
}

// setAllowed finds how much longer the driver may be busy: a hundredth of the
// recorded time after the warm-up. The smallest limit takes what it takes.
func (s *search) setAllowed(steps [][2]int) {
	s.allowed = math.MaxInt64
	times, last := &s.program.Trace.Events.Time, s.program.Trace.Events.Len()-1
	if len(steps) > vary.WarmUp && last >= 0 {
		if from, to := times.At(steps[vary.WarmUp][0]), times.At(last); from != trace.NoTime && to > from {
			s.span = time.Duration(to-from) * time.Microsecond
			s.allowed = s.span / 100
		}
	}
	if s.goal == SmallestLimit && s.options.Limit == 0 {
		s.allowed = math.MaxInt64
	}
}

// start tries the recorded settings and expandable segments on the recording.
func (s *search) start(ctx context.Context, steps [][2]int) error {
	current := s.program.Settings
	current.PerProcessMemoryFraction = 1 // the limit stands for it
	expandable := s.space.clean()
	expandable.ExpandableSegments = true
	s.keep, s.expand = &Candidate{Settings: current}, &Candidate{Settings: expandable}
	if use, _ := s.space.of.Takes(expandable); normal(current) == expandable || use != answer.Now {
		s.expand = s.keep
	}
	s.space.seen[normal(current)], s.space.seen[s.expand.Settings] = true, true
	s.courses = []*course{{
		name: "the recording", limit: s.options.Limit, total: s.options.DeviceMemory, unit: step,
		make: func() (*replay.Program, int) { return s.program, vary.WarmFrom(s.program, steps) },
	}}
	if err := s.ready(ctx, s.courses[0]); err != nil {
		return err
	}
	s.keep.figures, s.expand.figures = s.courses[0].keep, s.courses[0].expandable
	if s.busy = s.keep.figures.warm.Time; s.keep.figures.fails {
		// Up to its end it was not busy for long.
		o, err := s.courses[0].open(&s.replayed).run(ctx, current, 0, 0)
		if err != nil {
			return err
		}
		s.busy = o.Warm.Time
	}
	s.all = append(s.all, s.keep)
	if s.expand != s.keep {
		s.all = append(s.all, s.expand)
	}
	s.tell(len(s.all))
	return nil
}

// vary adds the variations to the courses, as far as there is time. One with much
// more live than in the recording is no run of the same program: tensors that
// outlive their step were not told apart.
func (s *search) vary(ctx context.Context, steps [][2]int) {
	variations := vary.Of(s.program, steps, seed)
	made := make([]*course, len(variations))
	_ = parallel.Each(ctx, s.options.Workers, len(variations), func(i int) error { // made keeps what matters of the errors
		c := &course{name: variations[i].Name, make: variations[i].Program, unit: step}
		err := s.ready(ctx, c)
		if err == nil {
			made[i] = c
		}
		return err
	})
	for _, c := range made {
		if c != nil && c.lower > 0 && c.lower/10 <= s.courses[0].lower/9 {
			s.courses = append(s.courses, c)
		}
	}
}

// ready finds the bounds of a course, and what the recorded settings and
// expandable segments do on it.
func (s *search) ready(ctx context.Context, c *course) error {
	t := c.open(&s.replayed)
	c.lower, _ = t.program.PeakLive()
	if of := s.courses[0]; c != of && of.lower > 0 {
		// As tight as the recording.
		scale := float64(c.lower) / float64(of.lower)
		c.unit = max(c.lower/500/step, 1) * step // a fifth of a percent is near enough
		c.limit, c.total = up(scale*float64(of.limit)), up(scale*float64(of.total))
	}
	var err error
	if c.keep, err = s.figures(ctx, t, s.keep.Settings); err != nil {
		return err
	}
	if c.expandable = c.keep; s.expand != s.keep {
		if c.expandable, err = s.figures(ctx, t, s.expand.Settings); ctx.Err() != nil {
			return err
		}
	}
	c.goal = math.Inf(1)
	for _, f := range []*figures{&c.keep, &c.expandable} {
		if !s.failed(f) {
			c.goal = min(c.goal, s.goal.value(f))
		}
	}
	if math.IsInf(c.goal, 1) {
		c.goal = max(1, s.goal.value(&figures{peak: c.lower, need: c.lower}))
	}
	return nil
}

// up returns whole steps.
func up(n float64) uint64 { return uint64(math.Ceil(n/step)) * step }

// figures finds all figures that the goal asks for.
func (s *search) figures(ctx context.Context, t *track, c settings.Settings) (figures, error) {
	f, err := t.try(ctx, c, 0)
	if err == nil && s.goal == SmallestLimit {
		f.need, err = t.findNeed(ctx, c, 0, 0)
	}
	return f, err
}

// failed reports whether a run has no figure for the goal. Whether it passes under
// the limit does not matter to what it needs.
func (s *search) failed(f *figures) bool {
	if s.goal == SmallestLimit {
		return f.need == 0
	}
	return f.fails
}

// stages makes the candidates. It reports whether it came to the end.
func (s *search) stages(ctx context.Context) bool {
	if !s.canWin() {
		return true
	}
	s.enough = s.replayed.Load() + s.work
	return s.evaluateAll(ctx, s.space.neighbours(s.space.clean())) &&
		s.evaluateAll(ctx, s.space.grid(coarseSplits, divisions[:4], segments[:1])) &&
		s.refine(ctx) &&
		s.evaluateAll(ctx, s.space.grid(splits, divisions, segments)) &&
		s.refine(ctx)
}

// canWin reports whether any setting could be so good that it is worth more than
// the simple ones.
func (s *search) canWin() bool {
	least := s.goal.value(&figures{peak: s.courses[0].lower, need: s.courses[0].lower})
	return least < s.worth()
}

// worth returns the value of the goal on the recording that other settings have
// to reach before they can win.
func (s *search) worth() float64 {
	simple := s.simple()
	if simple.score.tier > 0 {
		return math.Inf(1)
	}
	return s.courses[0].goal * simple.score.ratio / (1 + near)
}

// simple returns the better of the recorded settings and expandable segments.
func (s *search) simple() *Candidate {
	if s.expand.score.less(s.keep.score) {
		return s.expand
	}
	return s.keep
}

// evaluateAll evaluates candidates; it reports whether work and time sufficed.
func (s *search) evaluateAll(ctx context.Context, in []settings.Settings) bool {
	for chunk := range slices.Chunk(s.space.fresh(in), batch) {
		group := make([]*Candidate, len(chunk))
		for i, c := range chunk {
			group[i] = &Candidate{Settings: c}
		}
		s.evaluate(ctx, group)
		if ctx.Err() != nil || s.replayed.Load() >= s.enough {
			return false
		}
	}
	return true
}

// tell counts settings.
func (s *search) tell(n int) {
	all := s.count.Add(int64(n))
	if s.options.Progress != nil {
		s.options.Progress(int(all))
	}
}

// starts is how many of the best settings are varied.
const starts = 6

// refine varies the best settings one value at a time, as long as that helps.
func (s *search) refine(ctx context.Context) bool {
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
		if !s.evaluateAll(ctx, next) {
			return false
		}
		if s.best == before {
			return true
		}
	}
}

// leaders returns the settings that are best on the recording.
func (s *search) leaders(n int) []*Candidate {
	known := slices.DeleteFunc(slices.Clone(s.all), func(c *Candidate) bool { return s.failed(&c.figures) })
	slices.SortStableFunc(known, func(x, y *Candidate) int {
		return cmp.Or(cmp.Compare(s.goal.value(&x.figures), s.goal.value(&y.figures)), cmp.Compare(x.figures.peak, y.figures.peak),
			cmp.Compare(x.figures.warm.Time, y.figures.warm.Time), cmp.Compare(rank(x.Settings), rank(y.Settings)))
	})
	return known[:min(n, len(known))]
}
