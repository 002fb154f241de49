package plan

import (
	"context"
	"sort"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// Program is a ledger as calls of the allocator: call i is event i.
func Program(l *ledger.Ledger, s settings.Settings) (*replay.Program, error) {
	p, err := replay.NewProgram(s, len(l.Events), func(i int) replay.Call {
		e := l.Events[i]
		switch {
		case e == ledger.EmptyCache:
			return replay.Call{Kind: replay.CallEmptyCache, Tensor: -1}
		case e < 0:
			return replay.Call{Kind: replay.CallFree, Tensor: int(^e)}
		}
		t := &l.Tensors[e]
		return replay.Call{Kind: replay.CallAlloc, Tensor: int(e), Size: uint64(t.Bytes), Stream: uint64(t.Stream)}
	})
	if err != nil {
		return nil, err
	}
	var others []replay.ExternalRange
	for _, t := range l.External() {
		others = append(others, replay.ExternalRange{Call: int(l.Tensors[t.Tensor].Birth), ExternalRange: t.ExternalRange})
	}
	p.Started(others)
	return p, nil
}

// Played is a ledger that goes through the engine.
type Played struct {
	Ledger   *ledger.Ledger
	Settings settings.Settings // of the allocator
	Conf     string            // the same as it was given
	Capacity Capacity
	Group    Group

	program *replay.Program
	*figures
}

// Play runs the ledger without a limit. points is the length of the curve.
func (p *Played) Play(ctx context.Context, points int) (err error) {
	if p.program, err = Program(p.Ledger, p.Settings); err != nil {
		return err
	}
	p.figures, err = measure(ctx, p.Ledger, p.program, p.Settings, points)
	return err
}

// LiveAtPeak calls yield for every tensor that is allocated when allocated memory
// is highest, with the size of its block.
func (p *Played) LiveAtPeak(yield func(tensor int32, bytes uint64)) {
	for i := range p.Ledger.Tensors {
		if p.Ledger.Tensors[i].Live(p.at) && p.sizes[i] > 0 {
			yield(int32(i), p.sizes[i])
		}
	}
}

// outside returns what the process holds outside the allocator.
func (p *Played) outside() uint64 { return p.Capacity.outside(p.Group) }

// available returns the most that may be reserved; 0 if nothing bounds it.
func (p *Played) available() uint64 { return p.Capacity.available(p.Group) }

// conditions returns the conditions of a run within the capacity.
func (p *Played) conditions() replay.Conditions {
	return p.Capacity.conditions(p.Settings, p.Group)
}

// figures are what the engine makes of a ledger without a limit.
type figures struct {
	allocated, reserved, requested uint64   // peaks of the scored part
	at                             int      // the event after which allocated is highest
	sizes                          []uint64 // tensor -> size of its block
	curve                          []replay.Point
}

// Component is a part of the peak.
type Component struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"`
}

// rounding names what blocks have beyond what was asked for.
const rounding = "rounding"

// addresses is the size of driver/sim's address space, far more than the memory
// of any device.
const addresses = 15 << 40

// measure runs a program without a limit.
func measure(ctx context.Context, l *ledger.Ledger, p *replay.Program, s settings.Settings, points int) (*figures, error) {
	o, err := p.Run(ctx, replay.Conditions{Settings: s, From: l.Scored(), BlockSizes: true, Points: points})
	if err != nil {
		return nil, err
	}
	if o.Fails { // there are no more addresses
		return nil, problem.New("a request for %s with %s reserved is more than the %s of addresses that a plan has: give a smaller {batch} or {seq}",
			units.Size(o.First.Requested), units.Size(o.First.Reserved), units.Size(addresses))
	}
	return &figures{
		allocated: o.Allocated.Bytes, reserved: o.Reserved.Bytes, requested: o.Requested.Bytes,
		at: max(o.Allocated.Event, 0), sizes: o.BlockSizes, curve: o.Curve,
	}, nil
}

// components adds up what is live after an event by purpose, the largest first.
// They sum to what the engine has allocated then.
func components(l *ledger.Ledger, at int, sizes []uint64) []Component {
	purposes := l.Purposes()
	sums := make([]uint64, len(ledger.Kinds()))
	var extra uint64
	for i := range l.Tensors {
		t := &l.Tensors[i]
		if t.Live(at) && sizes[i] > 0 {
			sums[purposes[i]] += uint64(t.Bytes)
			extra += sizes[i] - uint64(t.Bytes)
		}
	}
	out := []Component{}
	for k, n := range sums {
		if n > 0 {
			out = append(out, Component{ledger.Kind(k).String(), n})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	if extra > 0 {
		out = append(out, Component{rounding, extra})
	}
	return out
}
