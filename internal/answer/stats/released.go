package stats

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// Released is what torch.cuda.empty_cache() would give back to the driver.
type Released struct {
	Bytes uint64 `json:"bytes"`
	// UpperBound: it may be less, as Note says.
	UpperBound bool   `json:"upper_bound"`
	Note       string `json:"note"`
}

// released looks at the free blocks of the segments: whole segments, and whole
// granules of expandable ones, go back; memory of private pools stays.
func released(t *trace.Trace) *Released {
	if len(t.Segments) == 0 || t.Host {
		return nil
	}
	rules := alloc.RulesOf(t.Settings.Parsed, t.Writer.Assumed())
	var out Released
	var private, pending, pinned uint64
	for i := range t.Segments {
		s := &t.Segments[i]
		as := alloc.Segment{Address: s.Address, TotalSize: s.TotalSize, Expandable: s.Expandable, Large: s.Type == "large"}
		for j := range s.Blocks {
			b := &s.Blocks[j]
			n := rules.Releasable(&as, &alloc.Block{Address: b.Address, Size: b.Size, State: b.State})
			switch {
			case b.State == alloc.ActivePendingFree:
				pending += b.Size
			case s.Pool != (alloc.PoolID{}):
				private += n
			case b.State == alloc.Inactive:
				out.Bytes += n
				pinned += b.Size - n
			}
		}
	}
	out.Note = "whole free segments"
	if pinned > 0 {
		out.Note += fmt.Sprintf("; %s is free beside blocks in use and stays", units.Size(pinned))
	}
	if private > 0 {
		out.Note += fmt.Sprintf("; %s is cached in private pools and stays as long as these live", units.Size(private))
	}
	if pending > 0 {
		out.Note += fmt.Sprintf("; %s waits for other streams and may go too", units.Size(pending))
	}
	return &out
}

// releasedOf computes it from a dump: reserved - active - inactive split. The
// counter of inactive splits leaves expandable segments out, so with these it is a
// bound.
func releasedOf(d *stats.Dump) *Released {
	reserved, active, split := find(d, "reserved_bytes.all.current"), find(d, "active_bytes.all.current"), find(d, "inactive_split_bytes.all.current")
	if reserved == nil || active == nil || split == nil {
		return nil
	}
	return &Released{
		Bytes: reserved.Sub(*active).Sub(*split).Mid, UpperBound: true,
		Note: "reserved - active - inactive split: exact if all segments are plain and no private pool caches memory, else the most that it can be",
	}
}
