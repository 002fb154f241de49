package recorded

import (
	"github.com/ashlar-mem/ashlar/plan/ledger"
)

// Large is the size from which on births are counted in the figure that a plan
// is judged by.
const Large = 1 << 20

// Cover says how much of two sequences of births is common to both.
type Cover struct {
	Planned, Recorded, Common                int
	PlannedBytes, RecordedBytes, CommonBytes int64
}

// Share is the part of the bytes that is common, of the side that has more.
func (c Cover) Share() float64 {
	if most := max(c.PlannedBytes, c.RecordedBytes); most > 0 {
		return float64(c.CommonBytes) / float64(most)
	}
	return 1
}

// Covered compares the births of at least least bytes from the given events on.
func Covered(planned, recorded *ledger.Ledger, fromPlanned, fromRecorded int, least int64) Cover {
	return Within(planned, recorded, Span{First: fromPlanned, Last: len(planned.Events)}, Span{First: fromRecorded, Last: len(recorded.Events)}, least)
}

// Within compares the births of at least least bytes in two phases.
func Within(planned, recorded *ledger.Ledger, inPlanned, inRecorded Span, least int64) Cover {
	var c Cover
	p, r := births(planned, inPlanned, least), births(recorded, inRecorded, least)
	ps, rs := sizes(planned, p), sizes(recorded, r)
	c.Planned, c.Recorded = len(p), len(r)
	c.PlannedBytes, c.RecordedBytes = sum(ps), sum(rs)
	for i, j := range common(rs, ps) {
		if j >= 0 {
			c.Common++
			c.CommonBytes += rs[i]
		}
	}
	return c
}

// births lists the tensors that are born in a phase.
func births(l *ledger.Ledger, in Span, least int64) []int32 {
	var out []int32
	for _, e := range l.Events[in.First:in.Last] {
		if e >= 0 && l.Tensors[e].Bytes >= max(1, least) {
			out = append(out, e)
		}
	}
	return out
}

func sizes(l *ledger.Ledger, tensors []int32) []int64 {
	out := make([]int64, len(tensors))
	for i, t := range tensors {
		out[i] = l.Tensors[t].Bytes
	}
	return out
}

func sum(xs []int64) int64 {
	var n int64
	for _, x := range xs {
		n += x
	}
	return n
}

// Peak is the highest sum of live tensors' bytes between two events, and the
// event that reached it.
func Peak(l *ledger.Ledger, first, last int) (bytes int64, event int) {
	var live int64
	event = first - 1
	for i, e := range l.Events[:last] {
		if i == first {
			bytes = live
		}
		if e >= 0 {
			live += l.Tensors[e].Bytes
		} else {
			live -= l.Tensors[^e].Bytes
		}
		if i >= first && live > bytes {
			bytes, event = live, i
		}
	}
	return bytes, event
}
