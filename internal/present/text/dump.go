package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/units"
	memorystats "github.com/ashlar-mem/ashlar/snapshot/stats"
)

// Dumps writes the facts of the memory_stats() dumps in a file: PyTorch's table
// of each, and the fractions that follow.
func Dumps(w io.Writer, dumps []*stats.Dump, style Style) error {
	return each(w, dumps, style, (*page).dump)
}

// each writes one thing after the other, with a line between them.
func each[T any](w io.Writer, things []T, style Style, write func(*page, T)) error {
	p := &page{w: w, style: style}
	for i, t := range things {
		if i > 0 {
			p.printf("\n")
		}
		write(p, t)
	}
	return p.err
}

var dumpSources = map[string]string{
	memorystats.JSON:    "memory_stats() as JSON",
	memorystats.Python:  "memory_stats() as printed by Python",
	memorystats.Summary: "the table of memory_summary()",
}

func (p *page) dump(d *stats.Dump) {
	about := dumpSources[d.Source]
	if d.Line > 1 {
		about += fmt.Sprintf(", line %s", countText(d.Line))
	}
	if d.Label != nil {
		about += fmt.Sprintf(" (%s)", *d.Label)
	}
	device := 0
	if d.Device != nil {
		device = *d.Device
	} else {
		about += "; it does not say which device"
	}
	p.wrapped("  ", about)
	if !d.Exact {
		p.wrapped("  ", "the table rounds its numbers down, so the ones below are not exact")
	}
	p.printf("\n")
	p.printf("%s", MemorySummary(d.Values, device, false))

	f := &d.Fragmentation
	p.heading("Fragmentation", "")
	row := func(s *stats.Share, name, meaning string) {
		p.printf("  %14s  %-15s %s\n", shareText(s), name, meaning)
	}
	row(f.OfPeaks, "of the peaks", "1 - peak allocated / peak reserved")
	row(f.ReservedUnallocated, "now", "(reserved - allocated) / reserved: not allocated")
	row(f.InactiveSplit, "inactive split", "/ reserved: free, but pinned by neighbours")
	row(f.Internal, "internal", "(active - requested) / active: rounding")
	p.wrapped("  ", "External fragmentation is not in these numbers: only a snapshot shows it.")
	p.emptyCache(d.EmptyCache, "now")
	p.readings(d.Readings)
	p.dumpCounters(d)
	p.dumpMissing(d)
}

// dumpCounters prints what is not in the table.
func (p *page) dumpCounters(d *stats.Dump) {
	var said []string
	for _, c := range []struct{ key, name string }{
		{"num_device_alloc", "driver allocations"},
		{"num_device_free", "driver frees"},
		{"num_sync_all_streams", "waited for all streams"},
	} {
		if v, ok := d.Values[c.key]; ok {
			said = append(said, fmt.Sprintf("%s %s x", c.name, units.Count(v)))
		}
	}
	if v, ok := d.Values["max_split_size"]; ok && v >= 0 {
		said = append(said, "max_split_size "+units.Size(uint64(v)))
	}
	if len(said) > 0 {
		p.printf("\n")
		p.wrapped("  ", strings.Join(said, ", "))
	}
}

func (p *page) dumpMissing(d *stats.Dump) {
	if len(d.Missing) == 0 {
		return
	}
	p.heading("Not in the file", "")
	const most = 8
	names, more := d.Missing, ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	zero := ""
	if slices.ContainsFunc(d.Missing, inSummary) {
		zero = ", shown as 0 in the table"
	}
	p.wrapped("  - ", fmt.Sprintf("%s of memory_stats()%s: %s%s", plural(len(d.Missing), "key", "keys"), zero, strings.Join(names, ", "), more))
}

// inSummary reports whether the table shows the value of a key.
func inSummary(key string) bool {
	return strings.Contains(key, ".") || key == "num_ooms" || key == "num_alloc_retries"
}

// shareText writes a share, or the range it lies in.
func shareText(s *stats.Share) string {
	switch {
	case s == nil:
		return "-"
	case s.Exact() || fmt.Sprintf("%.1f", 100*s.Low) == fmt.Sprintf("%.1f", 100*s.High):
		return fmt.Sprintf("%.1f %%", 100*s.Value)
	}
	return fmt.Sprintf("%.1f to %.1f %%", 100*s.Low, 100*s.High)
}
