package policies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/policy/managed"
	"github.com/ashlar-mem/ashlar/internal/run"
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

// Access is a use of recorded memory.
type Access struct {
	Event int    `json:"event"`
	Addr  uint64 `json:"addr"`
	Bytes uint64 `json:"bytes"`
	Write bool   `json:"write"`

	op     int32 // that it comes after
	tensor int32
	offset uint64
}

// ReadAccesses reads JSON lines of accesses, in the order of their events, and finds
// the blocks that they are in. The error names the line.
func ReadAccesses(r io.Reader, of *run.Checked) ([]Access, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var all []Access
	for n := 1; ; n++ {
		var a Access
		if err := dec.Decode(&a); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf(`access %d: %w; write {"event": 12, "addr": 140234, "bytes": 4096, "write": true}`, n, err)
		}
		if n > 1 && a.Event < all[n-2].Event {
			return nil, fmt.Errorf("access %d is at event %d, the one before at %d: sort them by event", n, a.Event, all[n-2].Event)
		}
		all = append(all, a)
	}
	return all, locate(all, of)
}

// located is a live block by its recorded address.
type located struct {
	addr, size uint64
	tensor     int32
}

// locate finds the tensor of each access.
func locate(all []Access, of *run.Checked) error {
	p := of.Program
	var live []located
	find := func(addr uint64) (int, bool) {
		return slices.BinarySearchFunc(live, addr, func(l located, addr uint64) int { return cmp.Compare(l.addr, addr) })
	}
	add := func(l located) {
		if at, found := find(l.addr); found {
			live[at] = l
		} else {
			live = slices.Insert(live, at, l)
		}
	}
	tensor := int32(0)
	for _, s := range p.Start.Segments {
		for _, b := range s.Blocks {
			add(located{b.Address, b.Size, tensor})
			tensor++
		}
	}
	c := newCourse(p, nil)
	at := make([]uint64, p.Tensors())
	op := 0
	for n := range all {
		a := &all[n]
		for ; op < len(c.ops) && c.event(op) <= a.Event; op++ {
			o := &c.ops[op]
			switch {
			case o.kind == opMalloc && c.event(op) >= 0:
				at[o.tensor] = of.Trace.Events.Addr.At(c.event(op))
				add(located{at[o.tensor], c.rounded(o.size), o.tensor})
			case o.kind == opFree || o.kind == opFreeLater:
				i := slices.IndexFunc(live, func(l located) bool { return l.tensor == o.tensor })
				if i >= 0 {
					live = slices.Delete(live, i, i+1)
				}
			}
		}
		i, found := find(a.Addr)
		if !found {
			i--
		}
		if i < 0 || a.Addr+a.Bytes > live[i].addr+live[i].size || a.Addr+a.Bytes < a.Addr {
			return fmt.Errorf("access %d: no block that is live at event %d holds %d bytes at %d", n+1, a.Event, a.Bytes, a.Addr)
		}
		a.op, a.tensor, a.offset = int32(op-1), live[i].tensor, a.Addr-live[i].addr
	}
	return nil
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
	for _, t := range all {
		r.Sizes = append(r.Sizes, Size{
			t.device, t.low, t.high, *milliseconds(a.Costs.time(t.low, prefetch)), *milliseconds(a.Costs.time(t.high, prefetch)),
		})
	}
	r.Notes = a.managedNotes(r.Sizes)
	return r, nil
}

// traffic is what a device of some size moves: a range, as far as accesses are not
// known.
type traffic struct{ device, low, high uint64 }

// findTraffic tries devices that are smaller and smaller.
func (a *asked) findTraffic(ctx context.Context) ([]traffic, error) {
	where, end, err := a.layout(ctx)
	if err != nil {
		return nil, err
	}
	if a.every, err = a.oftenEnough(ctx, where, mostTouches); err != nil {
		return nil, err
	}
	var all []traffic
	for _, share := range shares {
		t := traffic{device: a.lower / 100 * share}
		if t.low, err = a.moved(ctx, t.device, where, end, a.Accesses != nil, 0); err != nil {
			return nil, err
		}
		t.high = t.low
		if a.Accesses == nil {
			if t.high, err = a.moved(ctx, t.device, where, end, false, a.every); err != nil {
				return nil, err
			}
		}
		all = append(all, t)
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
func (a *asked) managedNotes(sizes []Size) []string {
	notes := []string{}
	if a.Accesses == nil {
		step := "every step"
		if a.every > 1 {
			step = fmt.Sprintf("one of %d steps, as there are so many,", a.every)
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
