package tenants

import (
	"context"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/bisect"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Ask plays the runs in every arrangement. The error of a question that cannot be
// answered is an *[InputError].
func Ask(ctx context.Context, q *Question) (*Answer, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if err := q.checkRuns(); err != nil {
		return nil, err
	}
	w := &work{Question: q, ctx: ctx}
	a := w.head()
	if err := w.playFreely(); err != nil {
		return nil, err
	}
	a.PeakLive = w.live.peakLive
	names := append([]string{Tenants}, q.Against...)
	if slices.Contains(names, Hard) || slices.Contains(names, MIG) {
		if err := w.findNeeds(); err != nil {
			return nil, err
		}
	}
	a.Arrangements = make([]*Arrangement, len(names))
	notes := make([][]string, len(names))
	err := parallel.Each(ctx, 0, len(names), func(i int) (err error) {
		a.Arrangements[i], notes[i], err = w.arrange(names[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	a.Notes = append(a.Notes, slices.Concat(notes...)...)
	return a, nil
}

// work is a question that is being answered.
type work struct {
	*Question
	ctx    context.Context
	enough uint64   // a limit that refuses nothing; a higher one is as good
	live   *played  // under that limit
	needs  []uint64 // of each run alone; 0 if it passes under no limit
}

// head describes the question.
func (w *work) head() *Answer {
	a := &Answer{Limit: w.Limit, Clock: w.Clock, OnOOM: whatif.OnOOMDie, Notes: []string{}}
	if w.SkipOOM {
		a.OnOOM = whatif.OnOOMSkip
	}
	for _, r := range w.Runs {
		s := r.settings()
		t := Tenant{
			Name: r.Name, File: r.File, Contradictions: append([]string{}, r.Contradictions...), SelfCheck: whatif.NewSelfCheck(r.Program), Settings: s.String(),
			Guarantee: r.Guarantee, Priority: r.Priority,
		}
		if r.Ceiling > 0 {
			t.Ceiling = &r.Ceiling
		}
		a.Tenants = append(a.Tenants, t)
		for _, n := range whatif.RestsOn(r.Program) {
			a.Notes = append(a.Notes, r.Name+": "+n)
		}
		if n := r.Program.Initial(); n > 0 && (len(w.Runs) > 1 || r.passes() > 1) {
			a.Notes = append(a.Notes, fmt.Sprintf("%s: the %s tensors from before its first event are requested when it begins, except under a hard split and in MIG instances", r.Name, units.Count(int64(n))))
		}
		if !s.ExpandableSegments {
			a.Notes = append(a.Notes, r.Name+": its large_segment_size_mb does not go with expandable segments, so it has none")
		}
	}
	return a
}

// playFreely plays the runs with as much memory as they like.
func (w *work) playFreely() error {
	w.enough = 80 << 30
	open := *w.Question
	open.Runs = nil
	for _, r := range w.Runs {
		w.enough += (4*r.Peaks.Reserved.Value + r.Guarantee) / alloc.SegmentUnit * alloc.SegmentUnit
		free := *r
		free.Guarantee, free.Ceiling = 0, 0
		open.Runs = append(open.Runs, &free)
	}
	s, _, err := open.asTenants(w.enough)
	if err != nil {
		return err
	}
	s.skip = true
	w.live, err = s.play(w.ctx, w.Clock)
	return err
}

// findNeeds finds what tune calls the need of each run, with all its passes.
func (w *work) findNeeds() error {
	w.needs = make([]uint64, len(w.Runs))
	return parallel.Each(w.ctx, 0, len(w.Runs), func(i int) error {
		r := w.Runs[i]
		lower, _ := r.Program.PeakLive()
		c, err := tune.Measure(w.ctx, r.Checked, r.settings(), 0, lower)
		if err != nil {
			return fmt.Errorf("%s: %w", r.File, err)
		}
		w.needs[i] = c.Need
		if r.passes() > 1 && c.Need > 0 {
			w.needs[i], err = w.needOfPasses(r, c.Need)
		}
		return err
	})
}

// needOfPasses finds the need of a run that is made several times: a later pass
// begins with what the earlier ones have cached, and may need more than the first.
// It is 0 if the run passes under no limit.
func (w *work) needOfPasses(r *Run, first uint64) (uint64, error) {
	one := *w.Question
	one.Runs = []*Run{r}
	passes := func(limit uint64) (bool, error) {
		return w.passes(one.alone(func(int) (uint64, uint64) { return limit, 0 }))
	}
	if ok, err := passes(w.enough); !ok || err != nil {
		return 0, err
	}
	return bisect.New(first, w.enough, alloc.SegmentUnit).Climb(passes)
}

// passes reports whether no request fails.
func (w *work) passes(s *stage) (bool, error) {
	s.skip, s.stop = true, true
	p, err := s.play(w.ctx, w.Clock)
	return err == nil && !p.fails, err
}

func (w *work) arrange(name string) (*Arrangement, []string, error) {
	switch name {
	case Shared:
		return w.shared()
	case Hard:
		return w.hard()
	case MIG:
		return w.mig()
	}
	return w.tenants()
}

func (w *work) tenants() (*Arrangement, []string, error) {
	s, g, err := w.asTenants(min(w.Limit, w.enough))
	if err != nil {
		return nil, nil, err
	}
	a, err := w.describe(Tenants, s)
	if err != nil {
		return nil, nil, err
	}
	usage := g.Usage().Tenants
	for i, r := range a.Results {
		m := s.members[i]
		r.PeakReserved = &m.step.Outcome().Reserved.Bytes
		r.DriverMS = milliseconds(m.device.Cost())
		r.Trims, r.TrimsCaused = usage[i].Trims, usage[i].TrimsCaused
	}
	low := uint64(0)
	for _, r := range w.Runs {
		low += r.Guarantee
	}
	err = w.smallest(a, low, func(limit uint64) (*stage, error) {
		s, _, err := w.asTenants(limit)
		return s, err
	})
	return a, nil, err
}

func (w *work) shared() (*Arrangement, []string, error) {
	a, err := w.describe(Shared, w.asShared(min(w.Limit, w.enough)))
	if err != nil {
		return nil, nil, err
	}
	notes := []string{"shared: streams keep their recorded numbers, so that runs on the same one reuse each other's blocks"}
	if first := w.Runs[0].settings(); slices.ContainsFunc(w.Runs, func(r *Run) bool { return r.settings() != first }) {
		notes = append(notes, "shared: the one engine has the settings of "+w.Runs[0].Name)
	}
	return a, notes, w.smallest(a, 0, func(limit uint64) (*stage, error) { return w.asShared(limit), nil })
}

// smallest finds the least limit under which nothing fails.
func (w *work) smallest(a *Arrangement, low uint64, at func(limit uint64) (*stage, error)) error {
	passes := func(limit uint64) (bool, error) {
		s, err := at(limit)
		if err != nil {
			return false, err
		}
		return w.passes(s)
	}
	if ok, err := passes(w.enough); !ok || err != nil {
		return err // a ceiling is too low
	}
	border, err := bisect.New(max(low, w.live.peakLive), w.enough, alloc.SegmentUnit).Climb(passes)
	if err == nil {
		w.suffices(a, border)
	}
	return err
}

// suffices notes that nothing fails with some memory.
func (w *work) suffices(a *Arrangement, bytes uint64) {
	idle := bytes - min(bytes, uint64(w.live.meanLive))
	a.SmallestLimit, a.IdleMean = &bytes, &idle
}

// hard gives each run what it needs, or its part of what there is.
func (w *work) hard() (*Arrangement, []string, error) {
	sum, none := uint64(0), ""
	for i, n := range w.needs {
		sum += n
		if n == 0 {
			none = w.Runs[i].Name
		}
	}
	if none != "" {
		return w.impossible(Hard, none+" passes under no limit")
	}
	shares := slices.Clone(w.needs)
	for i := range shares {
		if sum > w.Limit {
			shares[i] = uint64(float64(w.Limit)*float64(shares[i])/float64(sum)) / alloc.SegmentUnit * alloc.SegmentUnit
		}
	}
	s := w.alone(func(i int) (limit, memory uint64) { return max(shares[i], 1), 0 })
	a, err := w.describe(Hard, s)
	if err != nil {
		return nil, nil, err
	}
	w.describeShares(a, s, shares)
	w.suffices(a, sum)
	return a, nil, nil
}

// mig gives each run the smallest instance that holds it.
func (w *work) mig() (*Arrangement, []string, error) {
	var chosen []int
	var shares []uint64
	sum := uint64(0)
	for i, need := range w.needs {
		at := slices.IndexFunc(w.GPU.Instances, func(p Instance) bool { return need > 0 && p.Bytes >= need })
		if at < 0 {
			return w.impossible(MIG, fmt.Sprintf("no instance of the %s holds %s", w.GPU.Title, w.Runs[i].Name))
		}
		chosen = append(chosen, at)
		shares = append(shares, w.GPU.Instances[at].Bytes)
		sum += shares[i]
	}
	s := w.alone(func(i int) (limit, memory uint64) { return 0, shares[i] })
	a, err := w.describe(MIG, s)
	if err != nil {
		return nil, nil, err
	}
	w.describeShares(a, s, shares)
	for i, r := range a.Results {
		r.Profile = &w.GPU.Instances[chosen[i]].Name
	}
	notes := []string{"mig: profiles from " + w.GPU.Source + "; an instance also holds a context of its own, which is not counted"}
	if !w.GPU.Fits(chosen) {
		a.Fails = true
		return a, append(notes, fmt.Sprintf("mig: the instances do not fit on one %s together", w.GPU.Title)), nil
	}
	if sum > w.Limit {
		notes = append(notes, fmt.Sprintf("mig: the instances take %s, more than the limit, which does not hold for them", units.Size(sum)))
	}
	if !a.Fails { // an allocator may fail with more memory than it passes with
		w.suffices(a, sum)
	}
	return a, notes, nil
}

// impossible is an arrangement that cannot be made.
func (w *work) impossible(name, why string) (*Arrangement, []string, error) {
	a := &Arrangement{Name: name, Fails: true, Results: []*Result{}}
	return a, []string{name + ": " + why}, nil
}

// describe plays an arrangement under the limit.
func (w *work) describe(name string, s *stage) (*Arrangement, error) {
	p, err := s.play(w.ctx, w.Clock)
	if err != nil {
		return nil, err
	}
	a := &Arrangement{Name: name, Fails: p.fails}
	for _, m := range s.members {
		a.Results = append(a.Results, &Result{
			Tenant: m.Name, Requests: m.requests, Failures: m.failures, Guaranteed: m.guaranteed,
			PeakAllocated: m.peakLive, Retries: m.retries, DriverMS: milliseconds(m.driver),
		})
	}
	return a, nil
}

// describeShares adds what is known of runs that are alone.
func (w *work) describeShares(a *Arrangement, s *stage, shares []uint64) {
	for i, r := range a.Results {
		r.PeakReserved = &s.members[i].step.Outcome().Reserved.Bytes
		r.Share = &shares[i]
	}
}
