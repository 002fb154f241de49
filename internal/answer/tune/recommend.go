package tune

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

const (
	// near is how much better than a simpler setting another one has to be.
	near = 0.02
	// alike is how much better expandable segments have to be than the recorded
	// settings, and how much more a variation may reserve than with these.
	alike = 0.01
)

// score says how good settings are on all courses; the worst counts.
type score struct {
	// tier is 0 if nothing speaks against the settings, 1 if they keep the driver
	// busy for too long, more for each variation on which they fail, and never if
	// the recording itself does.
	tier  int
	ratio float64 // of the goal's figure to the better of recorded and expandable
	// toKeep is the highest ratio of the goal's figure to that of the recorded
	// settings, and worst the course that has it.
	toKeep float64
	worst  int
}

const failed, never = 2, 1000

func (a score) less(b score) bool { return a.tier < b.tier || a.tier == b.tier && a.ratio < b.ratio }

// within reports whether a is as good as b, or worse by no more than a part.
func (a score) within(b score, part float64) bool {
	return a.tier < b.tier || a.tier == b.tier && a.ratio <= b.ratio*(1+part)
}

// add adds the figures on a course.
func (s *search) add(to *score, i int, f *figures) {
	c := s.courses[i]
	switch {
	case i == 0 && (s.failed(f) || f.fails || s.more(c, f, 0)):
		to.tier += never
	case s.failed(f) || s.goal == FewestCalls && s.more(c, f, alike):
		to.tier += failed
	case i == 0 && s.slow(f):
		to.tier = 1
	}
	if i > 0 && s.goal == FewestCalls && !f.fails && s.goal.value(f) == c.goal && c.goal == 1 {
		return // where there are no calls to save, none are saved
	}
	ratio, toKeep := math.Inf(1), 0.0
	if !s.failed(f) {
		ratio = s.goal.value(f) / c.goal
	}
	if !s.failed(&c.keep) {
		toKeep = s.goal.value(f) / s.goal.value(&c.keep)
	}
	if i == 0 || ratio > to.ratio {
		to.ratio = ratio
	}
	if to.worst == 0 || toKeep > to.toKeep {
		to.toKeep, to.worst = toKeep, i
	}
}

// slow reports whether settings keep the driver busy on the recording for longer
// than the recorded ones, by more than is allowed.
func (s *search) slow(f *figures) bool { return f.warm.Time-s.busy > s.allowed }

// more reports whether settings reserve more than the recorded ones by more than
// a part. If it is the smallest limit that counts, they reserve what they need.
func (s *search) more(c *course, f *figures, part float64) bool {
	switch {
	case s.goal == SmallestLimit:
		return c.keep.need > 0 && float64(f.need) > float64(c.keep.need)*(1+part)
	case c.keep.fails:
		return false
	}
	return float64(f.peak) > float64(c.keep.peak)*(1+part)
}

// scoreKnown scores the recorded settings and expandable segments.
func (s *search) scoreKnown() {
	for i, c := range s.courses {
		s.add(&s.keep.score, i, &c.keep)
		if s.expand != s.keep {
			s.add(&s.expand.score, i, &c.expandable)
		}
	}
	s.keep.scored, s.expand.scored = true, true
	s.best = math.Inf(1)
	for _, c := range []*Candidate{s.keep, s.expand} {
		if !s.failed(&c.figures) {
			s.best = min(s.best, s.goal.value(&c.figures))
		}
	}
}

const (
	// finalists is how many settings are tried on the variations at most, and
	// heat how many with the same state of knowledge.
	finalists, heat = 48, 8
)

// finals tries on the variations what could win, the best on the recording first,
// until no other can be better.
func (s *search) finals(ctx context.Context) {
	rest := slices.DeleteFunc(s.leaders(len(s.all)), func(c *Candidate) bool { return c.scored })
	enough := s.replayed.Load() + s.work/2
	for n := 0; len(rest) > 0 && n < finalists && ctx.Err() == nil && s.replayed.Load() < enough; n += heat {
		most := s.champion().score
		rest = slices.DeleteFunc(rest, func(c *Candidate) bool { return !s.onRecording(c).less(most) })
		group := rest[:min(heat, len(rest))]
		rest = rest[len(group):]
		s.compete(ctx, group)
	}
	// Of those that are left, a simpler one may be hardly worse.
	best := s.champion().score
	rest = slices.DeleteFunc(s.leaders(len(s.all)), func(c *Candidate) bool {
		return c.scored || !s.onRecording(c).within(best, near) || rank(c.Settings) >= s.rank(s.winner())
	})
	slices.SortStableFunc(rest, func(x, y *Candidate) int { return cmp.Compare(rank(x.Settings), rank(y.Settings)) })
	for group := range slices.Chunk(rest[:min(len(rest), finalists)], heat) {
		if ctx.Err() != nil || s.replayed.Load() >= enough || rank(group[0].Settings) >= s.rank(s.winner()) {
			return
		}
		s.compete(ctx, group)
	}
}

// onRecording is the best score that settings can get.
func (s *search) onRecording(c *Candidate) score {
	var out score
	s.add(&out, 0, &c.figures)
	return out
}

// compete tries a group of candidates on all variations.
func (s *search) compete(ctx context.Context, group []*Candidate) {
	on := make([][]figures, len(s.courses))
	err := parallel.Each(ctx, s.options.Workers, len(s.courses)-1, func(i int) error {
		t := s.courses[i+1].open(&s.replayed)
		out := make([]figures, len(group))
		for k, c := range group {
			var err error
			if out[k], err = s.figuresNear(ctx, t, c); err != nil && ctx.Err() != nil {
				return err
			}
		}
		on[i+1] = out
		return nil
	})
	if err != nil {
		return
	}
	for k, c := range group {
		c.score, c.scored = s.onRecording(c), true
		for i := range s.courses[1:] {
			s.add(&c.score, i+1, &on[i+1][k])
		}
	}
}

// figuresNear finds the figures of a candidate on a variation. If it needs no
// more there, in relation, than on the recording, that is all that counts.
func (s *search) figuresNear(ctx context.Context, t *track, c *Candidate) (figures, error) {
	f, err := t.try(ctx, c.Settings, 0)
	if err != nil || s.goal != SmallestLimit {
		return f, err
	}
	here := uint64(float64(c.figures.need)/s.courses[0].goal*t.goal) / step * step
	ok, err := t.suffices(ctx, c.Settings, here)
	switch {
	case err != nil:
		return f, err
	case ok:
		f.need = here
		return f, nil
	}
	f.need, err = t.findNeed(ctx, c.Settings, here, 0)
	return f, err
}

// champion returns the settings with the best score.
func (s *search) champion() *Candidate {
	best := s.keep
	for _, c := range s.all {
		if c.scored && c.score.less(best.score) {
			best = c
		}
	}
	return best
}

// winner returns the settings to recommend: the simplest that are hardly worse
// than the best.
func (s *search) winner() *Candidate {
	best := s.champion()
	keep := s.keep.score.within(best.score, near) && s.keep.score.within(s.expand.score, alike)
	if keep || best.score.tier >= never || !s.gains(best) {
		return s.keep
	}
	won := best
	for _, c := range s.all {
		if c != s.keep && c.scored && s.gains(c) && c.score.within(best.score, near) &&
			cmp.Or(cmp.Compare(s.rank(c), s.rank(won)), cmp.Compare(c.score.ratio, won.score.ratio)) < 0 {
			won = c
		}
	}
	return won
}

// gains reports whether settings are better than the recorded ones on the
// recording itself.
func (s *search) gains(c *Candidate) bool {
	return s.keep.score.tier >= never || s.goal.value(&c.figures) < s.goal.value(&s.keep.figures)
}

func (s *search) rank(c *Candidate) int {
	if c == s.keep {
		return 0
	}
	return rank(c.Settings)
}

// shown is how many other settings a result has.
const shown = 3

// result makes the answer complete.
func (s *search) result(ctx context.Context, later *Candidate) (*Result, error) {
	r := &Result{
		Goal: s.goal, Current: s.keep, Recommended: s.winner(), AfterUpgrade: later, Variations: len(s.courses) - 1, Evaluated: int(s.count.Load()),
		LowerBound: s.courses[0].lower, Span: s.span,
	}
	if s.expand != s.keep && s.expand != r.Recommended {
		r.Others = append(r.Others, s.expand)
	}
	scored := slices.DeleteFunc(slices.Clone(s.all), func(c *Candidate) bool {
		return !c.scored || c == s.keep || c == s.expand || c == r.Recommended || c.score.tier >= failed
	})
	slices.SortStableFunc(scored, func(x, y *Candidate) int {
		return cmp.Or(cmp.Compare(x.score.ratio, y.score.ratio), cmp.Compare(rank(x.Settings), rank(y.Settings)))
	})
	scored = slices.CompactFunc(scored, func(x, y *Candidate) bool { return x.figures == y.figures })
	r.Others = append(r.Others, scored[:min(len(scored), shown-len(r.Others))]...)
	ctx = context.WithoutCancel(ctx) // little is left to do
	all := append([]*Candidate{r.Current, r.Recommended}, r.Others...)
	if later != nil {
		all = append(all, later)
	}
	for _, c := range all {
		if err := s.complete(ctx, c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// afterUpgrade tries what only later releases of PyTorch know, beside the best
// settings that can be used now. It returns the best of these if it is worth an
// upgrade.
func (s *search) afterUpgrade(ctx context.Context) *Candidate {
	if s.space.of.Writer.Since(pytorch.Default) && s.space.of.Platform == "" {
		return nil
	}
	s.space.use = answer.Later
	known, won := len(s.all), s.winner()
	expandable := s.space.clean()
	expandable.ExpandableSegments = true
	s.enough = s.replayed.Load() + s.work/4
	s.evaluateAll(ctx, append([]settings.Settings{expandable}, s.space.neighbours(won.Settings)...))
	tried := slices.Clone(s.all[known:])
	s.all = s.all[:known]
	for group := range slices.Chunk(tried, heat) {
		s.compete(ctx, group)
	}
	var best *Candidate
	for _, c := range tried {
		if c.scored && s.gains(c) && c.score.tier < failed && (best == nil || c.score.less(best.score)) {
			best = c
		}
	}
	if best == nil || won.score.within(best.score, near) {
		return nil
	}
	return best
}

// complete finds the figures of a candidate that the search had no use for.
func (s *search) complete(ctx context.Context, c *Candidate) error {
	if c.PeakReserved > 0 {
		return nil
	}
	t := s.courses[0].open(&s.replayed)
	if err := t.describe(ctx, c); err != nil {
		return err
	}
	if s.options.Limit > 0 {
		o, err := t.run(ctx, c.Settings, s.options.Limit, 0)
		if err != nil {
			return err
		}
		c.Limited = o
	}
	if i := c.score.worst; i > 0 && c != s.keep {
		w, err := s.worst(ctx, s.courses[i], c)
		if err != nil {
			return err
		}
		c.Worst = w
	}
	return nil
}

// worst finds what a candidate does on the variation that is worst for it.
func (s *search) worst(ctx context.Context, on *course, c *Candidate) (*Worst, error) {
	f, err := s.figures(ctx, on.open(&s.replayed), c.Settings)
	if err != nil {
		return nil, err
	}
	w := &Worst{Variation: on.name, Fails: s.failed(&f), RecordedFails: s.failed(&on.keep)}
	if !w.Fails {
		w.Value = s.goal.figure(&f)
	}
	if !w.RecordedFails {
		w.Recorded = s.goal.figure(&on.keep)
	}
	return w, nil
}
