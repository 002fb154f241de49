package stats

import (
	"math"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// Dump is what a dump of memory_stats() says.
type Dump struct {
	Device *int                   `json:"device"`
	Label  *string                `json:"label"`
	Line   int                    `json:"line"`
	Source string                 `json:"source"`
	Exact  bool                   `json:"exact"`
	Values map[string]int64       `json:"values"`
	Ranges map[string]units.Range `json:"ranges"`
	Extra  map[string]int64       `json:"extra"`
	// Missing are keys of memory_stats() that the dump does not have.
	Missing []string `json:"missing"`

	Fragmentation DumpFragmentation `json:"fragmentation"`
	Readings      []Reading         `json:"readings"`
	EmptyCache    *Released         `json:"empty_cache"` // nil if a number for it is missing
}

// DumpFragmentation holds the fractions that follow from a dump. The place of
// free blocks is in no dump, so there is no external fragmentation.
type DumpFragmentation struct {
	ReservedUnallocated *Share `json:"reserved_unallocated"`
	InactiveSplit       *Share `json:"inactive_split"`
	Internal            *Share `json:"internal"`
	// OfPeaks is the fragmentation of the run: 1 - peak allocated / peak reserved.
	OfPeaks *Share `json:"reserved_unallocated_of_peaks"`
}

// Share is a fraction from 0 to 1 that lies between Low and High.
type Share struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Exact reports whether the share is one number.
func (s *Share) Exact() bool { return s.Low == s.High }

// NewDump collects the facts of a dump.
func NewDump(d *stats.Dump) *Dump {
	out := &Dump{
		Label: text(d.Label), Line: d.Line, Source: d.Source, Exact: d.Exact, Values: d.Values,
		Ranges: d.Ranges, Extra: d.Extra, Missing: append([]string{}, d.Missing...),
	}
	if out.Ranges == nil {
		out.Ranges = map[string]units.Range{}
	}
	if out.Extra == nil {
		out.Extra = map[string]int64{}
	}
	if d.Device >= 0 {
		out.Device = &d.Device
	}
	part := func(total, used string) *Share {
		t, u := find(d, total), find(d, used)
		if t == nil || u == nil {
			return nil
		}
		return share(*t, *u, true)
	}
	f := &out.Fragmentation
	f.ReservedUnallocated = part("reserved_bytes.all.current", "allocated_bytes.all.current")
	f.OfPeaks = part("reserved_bytes.all.peak", "allocated_bytes.all.peak")
	// requested_bytes follows active_bytes (spec 14 item 7).
	f.Internal = part("active_bytes.all.current", "requested_bytes.all.current")
	if t, u := find(d, "reserved_bytes.all.current"), find(d, "inactive_split_bytes.all.current"); t != nil && u != nil {
		f.InactiveSplit = share(*t, *u, false)
	}
	out.Readings = readings(func(key string) *units.Range { return find(d, key) })
	out.EmptyCache = releasedOf(d)
	return out
}

// find returns a value of the dump, nil if it has none.
func find(d *stats.Dump, key string) *units.Range {
	if r, ok := d.Ranges[key]; ok {
		return &r
	}
	v, ok := d.Values[key]
	if !ok {
		return nil
	}
	r := units.Exactly(uint64(max(v, 0)))
	return &r
}

// share returns part / total or, for the rest, (total - part) / total.
func share(total, part units.Range, rest bool) *Share {
	if total.Mid == 0 || total.Low == 0 {
		return nil
	}
	s := &Share{Value: ratio(part.Mid, total.Mid), Low: ratio(part.Low, total.High), High: ratio(part.High, total.Low)}
	if rest {
		*s = Share{Value: 1 - s.Value, Low: 1 - s.High, High: 1 - s.Low}
	}
	for _, v := range []*float64{&s.Value, &s.Low, &s.High} {
		*v = math.Min(1, math.Max(0, *v))
	}
	return s
}

func ratio(a, b uint64) float64 { return float64(a) / float64(b) }
