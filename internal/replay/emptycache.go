package replay

import "slices"

// EmptyCaches returns the events of the calls of empty_cache, in order. A
// recording shows only calls that released something.
func (p *Program) EmptyCaches() []int {
	var out []int
	for i, c := range p.calls {
		if c.kind() == CallEmptyCache {
			out = append(out, int(p.events[i]))
		}
	}
	return out
}

// EmptyCacheAt returns the same program with other calls of empty_cache: one
// before the call of each of the given events, which ascend, and no others. A
// call that the program has at one of them stays where it is. The program is that
// of a trace.
func (p *Program) EmptyCacheAt(events []int) *Program {
	recorded := p.EmptyCaches()
	wanted := func(event int32) bool { _, ok := slices.BinarySearch(events, int(event)); return ok }
	var added []int // events
	for _, e := range events {
		if _, ok := slices.BinarySearch(recorded, e); !ok {
			added = append(added, e)
		}
	}
	out := *p
	n := len(p.calls) + len(added)
	out.calls, out.events = make([]packed, 0, n), make([]int32, 0, n)
	done := 0 // calls copied
	copyTo := func(end int) {
		for ; done < end; done++ {
			if c := p.calls[done]; c.kind() != CallEmptyCache || wanted(p.events[done]) {
				out.calls, out.events = append(out.calls, c), append(out.events, p.events[done])
			}
		}
	}
	for _, e := range added {
		copyTo(p.callAt(e))
		out.calls, out.events = append(out.calls, packed{tensor: -1, where: uint32(CallEmptyCache)}), append(out.events, int32(e))
	}
	copyTo(len(p.calls))
	return &out
}
