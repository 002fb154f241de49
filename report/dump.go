package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/facts"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// Dumps writes the facts of the memory_stats() dumps in a file: PyTorch's table
// of each, and the fractions that follow.
func Dumps(w io.Writer, name string, dumps []*facts.Dump, style Style) error {
	p := &page{w: w, style: style}
	for i, d := range dumps {
		if i > 0 {
			p.printf("\n")
		}
		p.dump(name, d)
	}
	return p.err
}

var dumpSources = map[string]string{
	stats.JSON:    "memory_stats() as JSON",
	stats.Python:  "memory_stats() as printed by Python",
	stats.Summary: "the table of memory_summary()",
}

func (p *page) dump(name string, d *facts.Dump) {
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
	p.printf("%s\n", clean(name))
	p.wrapped("  ", about)
	if !d.Exact {
		p.wrapped("  ", "the table rounds its numbers down, so those below are not exact")
	}
	p.printf("\n")
	p.printf("%s", MemorySummary(d.Values, device, false))

	f := &d.Fragmentation
	p.heading("Fragmentation", "")
	row := func(s *facts.Share, name, formula, meaning string) {
		p.printf("  %16s  %-14s %s\n", shareText(s), name, formula)
		p.printf("  %16s  %-14s %s\n", "", "", meaning)
	}
	row(f.ReservedUnallocated, "cached", "(reserved - allocated) / reserved", "held from the driver, used by no tensor")
	row(f.AtPeaks, "cached, peaks", "the same of the two peaks", "which need not be of one moment")
	row(f.InactiveSplit, "inactive split", "inactive_split / reserved", "free, but its neighbours are in use")
	row(f.Internal, "internal", "(active - requested) / active", "lost by rounding sizes up")
	p.dumpCounters(d)
	p.dumpMissing(d)
}

// dumpCounters tells what is not in the table.
func (p *page) dumpCounters(d *facts.Dump) {
	var said []string
	for _, c := range []struct{ key, name string }{
		{"num_device_alloc", "requests to the driver"},
		{"num_device_free", "returns to the driver"},
		{"num_sync_all_streams", "waits for all streams"},
	} {
		if v, ok := d.Values[c.key]; ok {
			said = append(said, units.Count(v)+" "+c.name)
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

func (p *page) dumpMissing(d *facts.Dump) {
	if len(d.Missing) == 0 {
		return
	}
	p.heading("Not in the file", "")
	names := d.Missing
	more := ""
	if len(names) > 8 {
		more = fmt.Sprintf(" and %d more", len(names)-8)
		names = names[:8]
	}
	p.wrapped("  - ", fmt.Sprintf("%s of memory_stats(), shown as 0 above: %s%s",
		plural(len(d.Missing), "key", "keys"), strings.Join(names, ", "), more))
}

// shareText writes a share, or the range it lies in.
func shareText(s *facts.Share) string {
	switch {
	case s == nil:
		return "-"
	case s.Exact() || fmt.Sprintf("%.1f", 100*s.Low) == fmt.Sprintf("%.1f", 100*s.High):
		return fmt.Sprintf("%.1f %%", 100*s.Value)
	}
	return fmt.Sprintf("%.1f to %.1f %%", 100*s.Low, 100*s.High)
}
