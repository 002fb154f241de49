package diff

import "github.com/ashlar-mem/ashlar/trace"

// Moments returns the moments to compare if the user chose none: its
// peak, if it has events, and its end.
func Moments(t *trace.Trace) []At {
	if t.Events.Len() == 0 {
		return []At{End}
	}
	return []At{Peak, End}
}

// CompareFirst compares two traces at their first moment, of sides as by
// [Moments] or at the same number of chosen ones. If only one has a peak the
// ends are compared: a peak and an end differ for no reason of the program.
func (x *Table) CompareFirst(a, b []*Side) *Diff {
	if len(a) != len(b) {
		a, b = a[len(a)-1:], b[len(b)-1:]
	}
	return x.Compare(a[0], b[0])
}
