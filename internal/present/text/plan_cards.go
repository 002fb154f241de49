package text

import (
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// PlanCards writes a job on several cards side by side.
func PlanCards(w io.Writer, head PlanHead, d *plan.CompareDocument, style Style) error {
	p := &page{w: w, style: style}
	var fit []string
	for _, c := range d.Cards {
		if c.Fits {
			fit = append(fit, c.Name)
		}
	}
	switch {
	case len(fit) == 0:
		p.verdict("DOES NOT FIT on any of these cards.")
	case len(fit) == len(d.Cards):
		p.verdict("FITS " + withoutText(d.LeavesOut) + "on all of these cards.")
	default:
		p.verdict("FITS " + withoutText(d.LeavesOut) + "on " + strings.Join(fit, ", ") + ".")
	}
	p.printf("\n")
	p.name("", head.Name)
	if head.Options != "" {
		p.wrapped("  ", head.Options)
	}
	p.printf("\n")
	wide, starred := 4, false
	for _, c := range d.Cards {
		wide = max(wide, width(c.Name)+1)
	}
	const row = "  %-*s %12s %12s %12s %13s  %s"
	p.line(row, wide, "card", "available", "reserved", "least", "spare", "fits")
	for _, c := range d.Cards {
		name, fits := c.Name, "no"
		if c.TotalEstimated {
			name, starred = name+"*", true
		}
		if c.Fits {
			fits = "yes"
			if c.Limited.Retries > 0 {
				fits = "yes, releasing its cache"
			}
		}
		p.line(row, wide, name, units.Size(c.Available), units.Size(c.PeakReserved), units.Size(c.SmallestLimit), units.Delta(c.Headroom), fits)
	}
	p.printf("\n")
	said := "available: for PyTorch's allocator; reserved: without a limit; least: what the run needs at least."
	if starred {
		said += " * its total is an estimate."
	}
	p.wrapped("", said)
	for _, c := range d.Cards {
		if c.Taken != "" {
			p.wrapped("", c.Name+": "+c.Taken+".")
		}
	}
	return p.err
}

// PlanSources says what became of the keys of files: the unknown ones, and with
// full all.
func PlanSources(w io.Writer, sources []*plan.Source, full bool, style Style) error {
	p := &page{w: w, style: style}
	for _, s := range sources {
		if !full {
			continue
		}
		p.heading("From "+Clean(s.File), "")
		for _, list := range []struct {
			name  string
			lines []string
		}{{"", s.Used}, {"not planned: ", s.NotPlanned}} {
			for _, l := range list.lines {
				p.wrapped("  "+list.name, Clean(l))
			}
		}
		for _, list := range []struct {
			name string
			keys []string
		}{{"no effect on memory: ", s.NoEffect}, {"not known: ", s.Unknown}} {
			if len(list.keys) > 0 {
				p.wrapped("  "+list.name, Clean(strings.Join(list.keys, ", ")))
			}
		}
	}
	return p.err
}
