package replay

import (
	"context"
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// Observed is what the replay of a trace knows and the trace does not tell.
// It holds up to the event at which the replay and the trace part, which is
// the end if Result.Identical.
type Observed struct {
	*Result
	// Sizes has for each alloc, free_requested and free_completed event the
	// size of the block, which a trace gives only as requested; 0 for the other
	// events and for those that were not reached.
	Sizes trace.Column[uint64]
	// AllocatedBytes and ActiveBytes are the sums of block sizes before the
	// first event.
	AllocatedBytes, ActiveBytes uint64
	// OOMs tells of the first failed requests what was free at that moment.
	OOMs []FreeAtOOM
}

// FreeAtOOM is the free memory in segments when a request failed.
type FreeAtOOM struct {
	Event        int
	FreeBytes    uint64
	LargestBytes uint64 // the largest free block, whatever its pool and stream
}

// ObserveOptions bound the work of Observe.
type ObserveOptions struct {
	// Search is how long to look for other readings of a trace that does not
	// replay identically at once; 0 looks only at the first one.
	Search time.Duration
	// Progress is told now and then how many events of the trace are done.
	Progress func(done, total int)
}

// maxOOMs bounds how many failed requests are looked at: each costs a walk
// over all blocks.
const maxOOMs = 1000

// Observe replays a trace as VerifyTrace does and notes the size of every
// block on the way.
func Observe(ctx context.Context, t *trace.Trace, opts ObserveOptions) (*Observed, error) {
	v := newTraceVerifier(t)
	o, p, err := v.observe(ctx, v.config, opts.Progress)
	if err != nil {
		return nil, err
	}
	if p.diff != nil && opts.Search > 0 {
		within, cancel := context.WithTimeout(ctx, opts.Search)
		defer cancel()
		q, err := v.best(within)
		switch {
		case err == nil && (q.diff == nil || q.pos > p.pos):
			if o, p, err = v.observe(ctx, q.config, opts.Progress); err != nil {
				return nil, err
			}
		case err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)):
			return nil, err
		}
	}
	o.Result = v.result(p)
	return o, nil
}

// observe plays the trace under one reading of it.
func (v *traceVerifier) observe(ctx context.Context, c playConfig, progress func(done, total int)) (*Observed, *player, error) {
	p, err := newPlayer(v.rows, c)
	if err != nil {
		return nil, nil, err
	}
	o := &observer{p: p, sizes: map[uint64]uint64{}}
	o.begin()
	for n := 0; p.pos < p.rows.Len() && p.diff == nil; n++ {
		if n%1024 == 0 {
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			if progress != nil {
				progress(p.pos, p.rows.Len())
			}
		}
		from := p.pos
		p.once()
		o.events(from, p.pos)
	}
	o.pad(v.t.Events.Len())
	return &o.out, p, nil
}

// observer derives the block sizes from the statistics around each call.
type observer struct {
	p         *player
	sizes     map[uint64]uint64 // of active blocks, by address
	allocated uint64
	out       Observed
}

func (o *observer) begin() {
	for _, s := range o.p.a.Segments() {
		o.out.AllocatedBytes += s.AllocatedSize
		o.out.ActiveBytes += s.ActiveSize
		for _, b := range s.Blocks {
			if b.State != alloc.Inactive {
				o.sizes[b.Address] = b.Size
			}
		}
	}
	o.allocated = o.out.AllocatedBytes
}

// events notes what one call did. A call that allocates frees nothing, so what
// allocated_bytes rises by is the new block.
func (o *observer) events(from, to int) {
	for i := from; i < to; i++ {
		e := o.p.rows.At(i)
		var size uint64
		switch e.Action {
		case "alloc":
			now := uint64(o.p.a.Stats().AllocatedBytes.All.Current)
			size = now - o.allocated
			o.sizes[e.Addr], o.allocated = size, now
		case "free_requested":
			size = o.sizes[e.Addr]
			o.allocated -= size
		case "free_completed":
			size = o.sizes[e.Addr]
			delete(o.sizes, e.Addr)
		case "oom":
			o.oom(o.p.rows.event(i))
		}
		o.pad(o.p.rows.event(i))
		o.out.Sizes.Append(size)
	}
}

func (o *observer) oom(row int) {
	if len(o.out.OOMs) >= maxOOMs {
		return
	}
	at := FreeAtOOM{Event: row}
	for _, s := range o.p.a.Segments() {
		for _, b := range s.Blocks {
			if b.State == alloc.Inactive {
				at.FreeBytes += b.Size
				at.LargestBytes = max(at.LargestBytes, b.Size)
			}
		}
	}
	o.out.OOMs = append(o.out.OOMs, at)
}

// pad fills the column for events that are not replayed.
func (o *observer) pad(n int) {
	for o.out.Sizes.Len() < n {
		o.out.Sizes.Append(0)
	}
}
