package plancompare

import (
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Large is the size from which on births are counted in the figure that a plan
// is judged by.
const Large = 1 << 20

// Cover says how much of two sequences of births is common to both.
type Cover struct {
	Planned, Recorded, Common                int
	PlannedBytes, RecordedBytes, CommonBytes int64
}

// Share returns the part of the bytes that is common, of the side that has
// more.
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
	for i, j := range ledger.Common(rs, ps) {
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

// Figures say how close a plan is to a recording.
type Figures struct {
	// Large are births of at least 1 MiB, All all of them, of the whole run;
	// Scored those of step 3 or of the generation.
	Large, All, LargeScored, AllScored Cover
	// Planned and Measured are the peaks.
	Planned, Measured Peaks
	// Differing counts the rows of the [Diff] that are not equal.
	Differing int
}

// Figures compares births, rows and peaks.
func (d *Diff) Figures() (Figures, error) {
	p, r := d.Planned, d.Run.Ledger
	f := Figures{
		Large:       Covered(p, r, 0, 0, Large),
		All:         Covered(p, r, 0, 0, 0),
		LargeScored: Covered(p, r, p.Scored(), r.Scored(), Large),
		AllScored:   Covered(p, r, p.Scored(), r.Scored(), 0),
		Measured:    d.Run.Peaks(),
	}
	for _, ph := range d.Phases {
		for _, row := range ph.Rows {
			if row.Mark != Equal {
				f.Differing++
			}
		}
	}
	var err error
	f.Planned, err = Through(p)
	return f, err
}

// Off is by which part of the measured value a planned one differs.
func Off(planned, measured int64) float64 {
	if measured == 0 {
		return math.Inf(1)
	}
	return float64(planned-measured) / float64(measured)
}

// Level is how well a plan agrees with a recording.
type Level string

// The levels, from the best one down.
const (
	Same  Level = "same"  // every birth and every death, in order
	Exact Level = "exact" // the three peaks to the byte
	Near  Level = "near"  // within the bars
	Far   Level = "far"
)

// The bars: parts by which the peaks may be off, and the part of the bytes of
// large births in step 3 that must be common.
const (
	AllocatedBar = 0.01
	ReservedBar  = 0.06
	CoverBar     = 0.9
)

// Level judges the figures.
func (f *Figures) Level() Level {
	within := func(planned, measured int64, bar float64) bool { return math.Abs(Off(planned, measured)) <= bar }
	switch {
	case f.Differing == 0:
		return Same
	case f.Planned == f.Measured && f.LargeScored.Share() >= CoverBar:
		return Exact
	case within(f.Planned.Requested, f.Measured.Requested, AllocatedBar) &&
		within(f.Planned.Allocated, f.Measured.Allocated, AllocatedBar) &&
		within(f.Planned.Reserved, f.Measured.Reserved, ReservedBar) && f.LargeScored.Share() >= CoverBar:
		return Near
	}
	return Far
}

// Reaches reports whether a level is at least as good as another.
func (l Level) Reaches(other Level) bool {
	order := []Level{Far, Near, Exact, Same}
	return slices.Index(order, l) >= slices.Index(order, other)
}
