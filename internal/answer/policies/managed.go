package policies

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/policy/managed"
	"github.com/ashlar-mem/ashlar/trace"
)

// shares of the live peak that a device with managed memory is tried at.
var shares = []uint64{100, 90, 80, 70, 50}

// Costs are what it takes to move a byte of managed memory, in nanoseconds.
type Costs struct{ OnDemand, Prefetch float64 }

// time returns how long so many bytes take to be moved.
func (c *Costs) time(bytes uint64, prefetched bool) time.Duration {
	switch {
	case c == nil:
		return sim.MoveTime(bytes, prefetched)
	case prefetched:
		return time.Duration(float64(bytes) * c.Prefetch)
	}
	return time.Duration(float64(bytes) * c.OnDemand)
}

// managed models the run in managed memory, on devices smaller than it needs.
func (a *asked) managed(name string) (*Result, error) {
	r := &Result{Policy: name, Kind: Model, Parameters: map[string]any{"page_bytes": managed.Page, "prefetch": name == ManagedPrefetch}, Notes: []string{}}
	if a.run == nil {
		why := "a placement problem has no time that it could be compared with"
		r.WhyNot = &why
		return r, nil
	}
	all, err := a.traffic()
	if err != nil {
		return nil, err
	}
	prefetch := name == ManagedPrefetch
	for _, t := range all.sizes {
		r.Sizes = append(r.Sizes, Size{
			t.device, t.low, t.high, *milliseconds(a.Costs.time(t.low, prefetch)), *milliseconds(a.Costs.time(t.high, prefetch)),
		})
	}
	r.Notes = a.managedNotes(r.Sizes, all.every)
	return r, nil
}

// traffic is what devices of some sizes move.
type traffic struct {
	sizes []movedAt
	every int // steps, of which in the last one all live blocks are touched
}

// movedAt is what a device of some size moves: a range, as far as accesses are not
// known.
type movedAt struct{ device, low, high uint64 }

// findTraffic tries devices that are smaller and smaller.
func (a *asked) findTraffic(ctx context.Context) (all traffic, err error) {
	where, end, err := a.layout(ctx)
	if err != nil {
		return all, err
	}
	if all.every, err = a.oftenEnough(ctx, where, mostTouches); err != nil {
		return all, err
	}
	for _, share := range shares {
		t := movedAt{device: a.lower / 100 * share}
		if t.low, err = a.moved(ctx, t.device, where, end, a.Accesses != nil, 0); err != nil {
			return all, err
		}
		t.high = t.low
		if a.Accesses == nil {
			if t.high, err = a.moved(ctx, t.device, where, end, false, all.every); err != nil {
				return all, err
			}
		}
		all.sizes = append(all.sizes, t)
	}
	return all, nil
}

// extent is where a tensor lies.
type extent struct{ addr, size uint64 }

// layout returns where best fit puts the tensors.
func (a *asked) layout(ctx context.Context) (where []extent, end uint64, err error) {
	s, err := policy.Parse("best-fit")
	if err != nil {
		return nil, 0, err
	}
	where = make([]extent, a.tensors)
	_, err = a.drive(ctx, s, conditions{only: -1, placed: func(tensor int32, addr, size uint64) {
		where[tensor] = extent{addr, size}
	}})
	// Heaps lie far apart: they are moved together.
	bases := map[uint64]uint64{}
	const apart = 1 << 40
	for _, e := range where {
		bases[e.addr/apart] = max(bases[e.addr/apart], e.addr%apart+e.size)
	}
	starts := map[uint64]uint64{}
	for _, base := range slices.Sorted(maps.Keys(bases)) {
		starts[base] = end
		end += (bases[base] + managed.Page) / managed.Page * managed.Page
	}
	for i := range where {
		where[i].addr = starts[where[i].addr/apart] + where[i].addr%apart
	}
	return where, end, err
}

// mostTouches bounds the pages that are touched at the ends of steps, for one size of the device: a second or so.
const mostTouches = 100_000_000

// oftenEnough returns at the end of how many steps all live blocks are touched: of each, unless that are more than most pages.
func (a *asked) oftenEnough(ctx context.Context, where []extent, most uint64) (every int, err error) {
	var live, touches uint64
	pages := func(t int32) uint64 { return 1 + where[t].size/managed.Page }
	err = a.lives(func(t int32, _ int) { live += pages(t) }, func(t int32, _ int) { live -= pages(t) }, func(i int) error {
		if a.endsStep(i) {
			touches += live
		}
		return interrupted(ctx, i)
	})
	return int(1 + touches/most), err
}

// endsStep reports whether a call is the last of a step, or of a tenth of the calls without steps.
func (a *asked) endsStep(i int) bool {
	tenth := max(len(a.ops)/10, 1)
	return a.ops[i].kind == opSync || len(a.steps) == 0 && i%tenth == tenth-1
}

func interrupted(ctx context.Context, i int) error {
	if i%stride == 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// liveTensors are those that live, by number.
type liveTensors struct {
	all  []int32 // and some that have ended
	live []bool
}

func (l *liveTensors) begin(t int32) {
	l.live[t] = true
	l.all = append(l.all, t)
}

// each calls f with them in order.
func (l *liveTensors) each(f func(t int32)) {
	l.all = slices.DeleteFunc(l.all, func(t int32) bool { return !l.live[t] })
	if !slices.IsSorted(l.all) {
		slices.Sort(l.all)
	}
	l.all = slices.Compact(l.all)
	for _, t := range l.all {
		f(t)
	}
}

// moved returns the bytes that a device of some size moves. Blocks are touched when
// they begin; as recorded accesses say; or, if every is not 0, at the end of every so many
// steps, or tenths of the calls without steps, and before they end.
func (a *asked) moved(ctx context.Context, bytes uint64, where []extent, end uint64, recorded bool, every int) (uint64, error) {
	m := managed.New(bytes, end)
	often := every > 0
	tensors := liveTensors{live: make([]bool, len(where))}
	next, steps := 0, 0
	begin := func(t int32, _ int) {
		m.Begin(where[t].addr, where[t].size)
		if often {
			tensors.begin(t)
		}
	}
	finish := func(t int32, _ int) {
		if often {
			m.Touch(where[t].addr, where[t].size, true)
			tensors.live[t] = false
		}
		m.End(where[t].addr, where[t].size)
	}
	err := a.lives(begin, finish, func(i int) error {
		if often && a.endsStep(i) {
			if steps++; steps%every == 0 {
				tensors.each(func(t int32) { m.Touch(where[t].addr, where[t].size, true) })
			}
		}
		for ; recorded && next < len(a.Accesses) && int(a.Accesses[next].op) <= i; next++ {
			x := &a.Accesses[next]
			m.Touch(where[x.tensor].addr+x.offset, x.Bytes, x.Write)
		}
		return interrupted(ctx, i)
	})
	return m.Moved(), err
}

// managedNotes says what the range rests on, and where the cliff is.
func (a *asked) managedNotes(sizes []Size, every int) []string {
	notes := []string{}
	if a.Accesses == nil {
		step := "every step"
		if every > 1 {
			step = fmt.Sprintf("one of %d steps, as there are so many,", every)
		}
		notes = append(notes, "a recording shows no accesses: low is as if blocks were touched only when they are allocated, high as if also in "+step+" and before they are freed; --access tells")
	}
	if a.Costs == nil {
		notes = append(notes, "times are by the costs of an H200; --costs takes those of another device")
	}
	span := a.span()
	if span == 0 {
		return append(notes, "the recording has no times, so there is no span to compare with")
	}
	for i, s := range sizes {
		if s.AddedLowMS > float64(span.Microseconds())/1e3/10 {
			return append(notes, fmt.Sprintf("the cliff: from %s on (%d %% of the live peak) even the low end adds more than a tenth of the recorded %s",
				size(s.DeviceBytes), shares[i], span.Round(time.Millisecond)))
		}
	}
	return append(notes, fmt.Sprintf("no cliff: at no size the low end adds more than a tenth of the recorded %s", span.Round(time.Millisecond)))
}

// span returns the recorded time from the first event to the last.
func (a *asked) span() time.Duration {
	first, last := int64(trace.NoTime), int64(trace.NoTime)
	for i := range a.run.Events() {
		if t := a.run.Trace.Events.Time.At(i); t != trace.NoTime {
			if first == trace.NoTime {
				first = t
			}
			last = t
		}
	}
	return time.Duration(last-first) * time.Microsecond
}
