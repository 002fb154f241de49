package whatif

import (
	"context"
	"errors"
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Change is a what-if on the program instead of its settings.
type Change struct {
	Kind  string `json:"kind"`
	Value string `json:"value"` // of the flag; empty if it has none
	Note  string `json:"note"`  // what was changed, in words
}

// The kinds of a [Change].
const (
	ChangeNoCache = "no_cache" // every request goes to the driver
	ChangeBucket  = "bucket"   // sizes that vary are padded
	ChangeOrder   = "order"    // what stays is allocated first
)

// Name returns the kind with the value.
func (c *Change) Name() string {
	if c.Value == "" {
		return c.Kind
	}
	return c.Kind + " " + c.Value
}

// trial is a program to be run under some settings.
type trial struct {
	Setting
	program    *replay.Program
	change     *Change // nil if none
	emptyCache *string // nil if as recorded
}

// trials returns what is to be run: the recording first. Each change of the program
// is tried under the recorded settings and under the others; without one, or
// beside a program without a cache, the others are tried on the program as it is.
func (q *Question) trials(ctx context.Context, r *run.Checked) ([]trial, []Change, *EmptyCacheCalls, error) {
	p := r.Program
	recorded := recordedSetting(p)
	out := []trial{{Setting: recorded, program: p}}
	plain := true
	add := func(t trial) {
		plain = false
		for _, s := range append([]Setting{recorded}, q.Settings...) {
			t.Setting = s
			out = append(out, t)
		}
	}
	var calls *EmptyCacheCalls
	if q.EmptyCache != (EmptyCache{}) {
		changed, c, err := q.EmptyCache.apply(ctx, r)
		if err != nil {
			return nil, nil, nil, err
		}
		calls = c
		add(trial{program: changed, emptyCache: &c.When})
	}
	changes := []Change{}
	if q.Bucket.Text != "" || q.Order {
		steps, err := r.Steps(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		if q.Bucket.Text != "" {
			changed, note, err := q.Bucket.apply(p, steps.List)
			if err != nil {
				return nil, nil, nil, err
			}
			changes = append(changes, Change{ChangeBucket, q.Bucket.Text, note})
			add(trial{program: changed, change: &Change{Kind: ChangeBucket, Value: q.Bucket.Text}})
		}
		if q.Order {
			changed, note, err := longLivedFirst(p, steps.List)
			if err != nil {
				return nil, nil, nil, err
			}
			changes = append(changes, Change{Kind: ChangeOrder, Note: note})
			add(trial{program: changed, change: &Change{Kind: ChangeOrder}})
		}
	}
	if q.NoCache {
		changes = append(changes, Change{Kind: ChangeNoCache, Note: noCacheText(p)})
		out = append(out, trial{Setting: recorded, program: p, change: &Change{Kind: ChangeNoCache}})
	}
	if plain {
		for _, s := range q.Settings {
			out = append(out, trial{Setting: s, program: p})
		}
	}
	return out, changes, calls, nil
}

const noCacheNote = "every request goes to the driver with the size asked for, and every free at once, which waits for the device each time " +
	"(that wait is not in the driver's time); PyTorch knows no limit then, and its statistics stay 0"

// noCacheText says what a run without the cache is.
func noCacheText(p *replay.Program) string {
	for i := range p.Len() {
		if c := p.Call(i); c.Kind == replay.CallAlloc && c.Pool != (alloc.PoolID{}) {
			return noCacheNote + "; pools have no effect then and CUDA graphs cannot be captured: this run uses one or the other"
		}
	}
	return noCacheNote
}

// longLivedFirst returns the program with what is still there after the last step
// allocated before everything else.
func longLivedFirst(p *replay.Program, steps []findings.Step) (*replay.Program, string, error) {
	until := p.Trace.Events.Len()
	when := "at the end"
	for _, s := range steps {
		if s.Complete {
			until, when = s.End, "after the last complete step"
		}
	}
	tensors, bytes := p.LongLived(until)
	if len(tensors) == 0 {
		return nil, "", errors.New("--order: nothing that the recording shows allocated is still there at its end, so there is nothing to allocate first")
	}
	return p.Early(tensors), fmt.Sprintf("the %s blocks (%s) that are still there %s are allocated before everything else",
		units.Count(int64(len(tensors))), units.Size(bytes), when), nil
}

// run runs a trial.
func (t *trial) run(ctx context.Context, c replay.Conditions) (*replay.Outcome, error) {
	if t.change != nil && t.change.Kind == ChangeNoCache {
		return t.program.RunUncached(ctx, c)
	}
	return t.program.Run(ctx, c)
}
