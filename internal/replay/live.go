package replay

import (
	"cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// EachFirst calls f for the tensors that are there before the first call, in the order
// of their numbers, with the call that would have allocated them.
func (p *Program) EachFirst(f func(tensor int, c Call)) {
	tensor := 0
	for i := range p.initial {
		s := &p.initial[i]
		for _, b := range s.Blocks {
			// Of a block from before the first event one of the two may not be known.
			f(tensor, Call{Kind: CallAlloc, Tensor: tensor, Size: cmp.Or(b.RequestedSize, b.Size), Stream: s.Stream, Pool: s.Pool, Event: -1})
			tensor++
		}
	}
}

// FreedBefore calls f for the frees that were requested before the first call,
// each with the made-up stream that it waits for.
func (p *Program) FreedBefore(f func(tensor, stream int)) {
	for _, w := range p.freed {
		f(int(w.tensor), w.stream)
	}
}

// PeakLive returns the most bytes that are live at a time, and the call that
// brings them: requests rounded to 512 B, from their allocation until their free
// is complete. No allocator needs less. The call is -1 if the peak is at the start.
func (p *Program) PeakLive() (bytes uint64, call int) {
	rules := alloc.RulesOf(settings.Default(), pytorch.Default)
	sizes := make([]uint64, p.tensors)
	waits := make([][]int32, p.waits)
	var live uint64
	p.EachFirst(func(tensor int, c Call) {
		sizes[tensor] = rules.Round(c.Size)
		live += sizes[tensor]
	})
	p.FreedBefore(func(tensor, stream int) { waits[stream] = append(waits[stream], int32(tensor)) })
	end := func(tensor int32) {
		live -= sizes[tensor]
		sizes[tensor] = 0
	}
	bytes, call = live, -1
	note := func(n uint64, i int) {
		if n > bytes {
			bytes, call = n, i
		}
	}
	for i, c := range p.calls {
		switch c.kind() {
		case CallAlloc:
			sizes[c.tensor] = rules.Round(c.size)
			live += sizes[c.tensor]
			note(live, i)
		case CallFree:
			end(c.tensor)
		case CallFreeLater:
			waits[c.placeOrStream()] = append(waits[c.placeOrStream()], c.tensor)
		case CallComplete:
			for _, t := range waits[c.placeOrStream()] {
				end(t)
			}
			waits[c.placeOrStream()] = waits[c.placeOrStream()][:0]
		case CallTry:
			note(live+rules.Round(c.size), i)
		}
	}
	return bytes, call
}
