package tune

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/vary"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/settings"
)

// Evaluator tries the settings of a batch on the recording, wherever it likes: on
// a run of the same file [Batch.Try] does so. There is a trial for each of the
// settings, in their order.
type Evaluator func(ctx context.Context, b *Batch) ([]Trial, error)

// Batch are settings that are compared with the same state of knowledge, and what
// they are to reach. It can be sent elsewhere as JSON.
type Batch struct {
	Settings []settings.Settings `json:"settings"`
	Goal     Goal                `json:"goal"`

	// Of the recording: the peak of live bytes, the limit and the memory of the
	// device, 0 for none.
	Lower        uint64 `json:"lower_bytes"`
	Limit        uint64 `json:"limit_bytes"`
	DeviceMemory uint64 `json:"device_bytes"`

	// Most is what a run may reserve, 0 for anything; Busy how long the driver may
	// take after the warm-up; Below is what the goal's figure has to be below, nil
	// for anything; High is a limit that has to suffice, nil if none is known.
	Most  uint64        `json:"most_bytes"`
	Busy  time.Duration `json:"busy_ns"`
	Below *float64      `json:"below"`
	High  *uint64       `json:"high_bytes"`
}

// Trial is what became of settings.
type Trial struct {
	Good  bool              `json:"good"` // they could win, and have figures
	Peak  uint64            `json:"peak_bytes"`
	Need  uint64            `json:"need_bytes"`
	Warm  replay.DriverWork `json:"warm"`
	Calls int64             `json:"calls"` // that were replayed to find out
}

// Try tries the settings of a batch on a run, on so many cores; 0 is all. When the
// context ends, the trials that are missing are not good.
func (b *Batch) Try(ctx context.Context, of *run.Checked, workers int) ([]Trial, error) {
	steps, err := of.Steps(ctx)
	if err != nil {
		return nil, err
	}
	warmFrom := vary.WarmFrom(of.Program, steps.Ranges())
	on := &course{
		lower: b.Lower, limit: b.Limit, total: b.DeviceMemory, unit: step,
		make: func() (*replay.Program, int) { return of.Program, warmFrom },
	}
	return b.on(ctx, on, workers, func() {}), context.Cause(ctx)
}

// on tries the settings on a course. done is called after each.
func (b *Batch) on(ctx context.Context, c *course, workers int, done func()) []Trial {
	out := make([]Trial, len(b.Settings))
	_ = parallel.Each(ctx, workers, len(out), func(i int) error { // out keeps what matters of the errors
		var calls atomic.Int64
		trial, err := b.one(ctx, c.open(&calls), b.Settings[i])
		if err != nil {
			trial.Good = false
		}
		trial.Calls = calls.Load()
		out[i] = trial
		done()
		return err
	})
	return out
}

// one tries settings on the recording. An error is of the context, or says that
// the device refuses the settings.
func (b *Batch) one(ctx context.Context, t *track, s settings.Settings) (Trial, error) {
	high, first := uint64(0), false
	if b.Goal == SmallestLimit && b.High != nil {
		// Most settings fail under one of two limits, and a run that fails is no whole
		// run: it fails sooner under the lower one.
		high = *b.High
		first = t.limit == 0 || high < t.limit
	}
	if first {
		if ok, err := t.suffices(ctx, s, high); !ok || err != nil {
			return Trial{}, err
		}
	}
	f, err := t.try(ctx, s, b.Most)
	if err != nil || f.fails || f.warm.Time > b.Busy {
		return Trial{}, err
	}
	if high > 0 && !first {
		if ok, err := t.suffices(ctx, s, high); !ok || err != nil {
			return Trial{}, err
		}
	}
	out := Trial{Peak: f.peak, Warm: f.warm}
	if b.Goal != SmallestLimit {
		out.Good = b.Below == nil || b.Goal.value(&f) < *b.Below
		return out, nil
	}
	out.Need, err = t.findNeed(ctx, s, 0, high)
	out.Good = out.Need > 0
	return out, err
}

// batch says what candidates have to reach.
func (s *search) batch(group []*Candidate) *Batch {
	on := s.courses[0]
	b := &Batch{Goal: s.goal, Lower: on.lower, Limit: on.limit, DeviceMemory: on.total, Busy: math.MaxInt64}
	for _, c := range group {
		b.Settings = append(b.Settings, c.Settings)
	}
	worth := s.worth()
	if !math.IsInf(worth, 1) {
		b.Below = &worth
	}
	if !on.keep.fails {
		if s.allowed < math.MaxInt64-s.busy {
			b.Busy = s.busy + s.allowed
		}
		if s.goal != SmallestLimit {
			b.Most = on.keep.peak // never more than now
		}
		if s.goal == LeastReserved {
			b.Most = uint64(min(float64(b.Most), worth))
		}
	}
	if s.goal == SmallestLimit && (!math.IsInf(worth, 1) || s.best < math.MaxInt64) {
		high := uint64(min(worth, s.best*(1+near/2), math.MaxInt64)) / step * step
		b.High = &high
	}
	return b
}

// evaluate tries a group of candidates. Each is compared with what was known
// before the group.
func (s *search) evaluate(ctx context.Context, group []*Candidate) {
	b := s.batch(group)
	var trials []Trial
	if s.options.Evaluate != nil {
		var err error
		if trials, err = s.options.Evaluate(ctx, b); err != nil || len(trials) != len(group) {
			trials = nil
		} else {
			s.tell(len(group))
		}
	}
	if trials == nil && ctx.Err() == nil { // nobody else could
		trials = b.on(ctx, s.courses[0], s.options.Workers, func() { s.tell(1) })
	}
	for i, t := range trials {
		s.replayed.Add(t.Calls)
		if c := group[i]; t.Good {
			c.figures = figures{peak: t.Peak, need: t.Need, warm: t.Warm}
			s.all = append(s.all, c)
			s.best = min(s.best, s.goal.value(&c.figures))
		}
	}
}
