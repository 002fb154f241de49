package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/facts"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Snapshot writes the facts about a snapshot, at most 80 columns wide where
// names and numbers allow it.
func Snapshot(w io.Writer, name string, f *facts.Snapshot, style Style) error {
	p := &page{w: w, style: style}
	p.file(name, f)
	p.settings(&f.Settings)
	p.memory(f)
	p.fragmentation(f)
	p.segments(f)
	p.ooms(f)
	p.holders(f)
	p.missing(f)
	return p.err
}

// file says what the file is and what it is about.
func (p *page) file(name string, f *facts.Snapshot) {
	kind := "memory snapshot, " + f.Format
	if f.Writer != nil {
		kind += " by " + *f.Writer
	}
	if f.Compression != nil {
		kind += ", " + *f.Compression
	}
	size := units.Size(uint64(f.UnpackedBytes))
	switch {
	case f.FileBytes != nil && f.Compression != nil:
		size = units.Size(uint64(*f.FileBytes)) + ", unpacked " + size
	case f.FileBytes != nil:
		size = units.Size(uint64(*f.FileBytes))
	}
	p.printf("%s\n", clean(name))
	p.wrapped("  ", kind+", "+size)
	p.wrapped("  ", course(f))
	if len(f.Annotations) > 0 {
		var names []string
		for _, a := range f.Annotations[:min(len(f.Annotations), 6)] {
			names = append(names, fmt.Sprintf("%s x %s", a.Name, countText(a.Count)))
		}
		if more := len(f.Annotations) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%s more names", countText(more)))
		}
		p.wrapped("  annotations: ", strings.Join(names, ", "))
	}
	if r := f.Replay; r != nil && r.Identical {
		p.wrapped("  ", fmt.Sprintf("replayed: all %s events identical, so sizes of blocks and peaks are exact", countText(r.Events)))
	} else if r != nil {
		p.wrapped("  ", fmt.Sprintf("replayed: %s of %s events identical", countText(r.IdenticalEvents), countText(r.Events)))
	}
	if len(f.Devices) > 1 {
		p.devices(f)
	}
}

// course is what happened, in one sentence.
func course(f *facts.Snapshot) string {
	var parts []string
	device := "host memory"
	if f.Device != nil {
		device = fmt.Sprintf("device %d", *f.Device)
	}
	if f.DeviceReason != nil {
		device = *f.DeviceReason
	}
	events := plural(f.Events, "event", "events")
	if f.Span != nil {
		events += " in " + secondsText(*f.Span)
	}
	parts = append(parts, device, events)
	if f.Steps != nil {
		parts = append(parts, plural(f.Steps.Complete, "step", "steps")+" complete")
	}
	if n := len(f.Streams); n > 1 {
		parts = append(parts, plural(n, "stream", "streams"))
	}
	if n := len(f.OOMs); n > 0 {
		parts = append(parts, plural(n, "request", "requests")+" failed for want of memory")
	}
	return strings.Join(parts, "; ")
}

func (p *page) devices(f *facts.Snapshot) {
	p.heading("Devices", "          events   segments     reserved    allocated")
	for _, d := range f.Devices {
		name := "host"
		if d.Device != nil {
			name = fmt.Sprint(*d.Device)
		}
		mark, more := " ", ""
		if d.Chosen {
			mark, more = "*", "  shown here"
		}
		if d.OOMs > 0 {
			more += ", " + plural(d.OOMs, "OOM", "OOMs")
		}
		p.printf("%s %-6s %14s %10s %12s %12s%s\n", mark, name, countText(d.Events), countText(d.Segments),
			units.Size(d.ReservedBytes), units.Size(d.AllocatedBytes), strings.Replace(more, ", ", "  ", 1))
	}
}

func (p *page) settings(s *facts.Settings) {
	switch {
	case !s.Known:
		p.printf("  settings: not in the file\n")
	case len(s.NonDefault) == 0:
		p.printf("  settings: PyTorch's defaults\n")
	default:
		p.heading("Settings", " (only what is not the default)")
		for _, x := range s.NonDefault {
			p.wrapped("  ", x.Key+":"+x.Value)
			p.wrapped("      ", x.Meaning)
		}
	}
}

func (p *page) memory(f *facts.Snapshot) {
	m := &f.Memory
	p.heading("Memory", "           at the end         peak   peak at")
	row := func(name string, l facts.Level) {
		p.printf("  %-12s %12s %12s   %s\n", name, sizeOr(l.Now), sizeOr(l.Peak), cut(momentText(l.At, f), pageWidth-44))
	}
	row("reserved", m.Reserved)
	row("allocated", m.Allocated)
	row("active", m.Active)
	row("requested", m.Requested)
	if (m.Pending.Now != nil && *m.Pending.Now > 0) || (m.Pending.Peak != nil && *m.Pending.Peak > 0) {
		row("pending free", m.Pending)
	}
	blocks := "-"
	if m.Blocks.Peak != nil {
		blocks = countText(*m.Blocks.Peak)
	}
	p.printf("  %-12s %12s %12s   %s\n", "blocks", countText(m.Blocks.Now), blocks, cut(momentText(m.Blocks.At, f), pageWidth-44))
	p.printf("  %-12s %12s                largest free block %s\n", "free", units.Size(m.FreeBytes), units.Size(m.LargestFreeBytes))
}

// momentText says when something was.
func momentText(m *facts.Moment, f *facts.Snapshot) string {
	if m == nil {
		return ""
	}
	if m.Event == nil {
		return "before the first event"
	}
	s := "event " + countText(*m.Event)
	if m.Since != nil {
		s += ", " + secondsText(*m.Since)
	}
	if m.Step != nil && f.Steps != nil {
		switch {
		case *m.Step > f.Steps.Complete:
			s += fmt.Sprintf(", after step %d", f.Steps.Complete)
		default:
			s += fmt.Sprintf(", step %d", *m.Step)
		}
	}
	if m.Annotation != nil {
		s += ", " + clean(*m.Annotation)
	}
	return s
}

func (p *page) fragmentation(f *facts.Snapshot) {
	x := &f.Fragmentation
	p.heading("Fragmentation", " at the end")
	row := func(v *float64, name, formula, meaning string) {
		p.printf("  %7s  %-14s %s\n", percentText(v), name, formula)
		p.printf("           %-14s %s\n", "", meaning)
	}
	row(x.ReservedUnallocated, "cached", "(reserved - allocated) / reserved", "held from the driver, but used by no tensor")
	if x.AtPeak != nil {
		p.printf("           %-14s it was %s when reserved was highest\n", "", percentText(x.AtPeak))
	}
	row(x.InactiveSplit, "inactive split", "free parts of segments in use / reserved", "cannot be given back to the driver as long as a neighbour lives")
	row(x.Internal, "internal", "(allocated - requested) / allocated", "lost by rounding sizes up")
	row(x.External, "external", "1 - largest free block / free", "free, but not in one piece")
}

func (p *page) segments(f *facts.Snapshot) {
	if len(f.Segments) == 0 {
		return
	}
	stream := 0
	pools := false
	for _, g := range f.Segments {
		stream = max(stream, len(Stream(g.Stream)))
		pools = pools || g.Pool != nil && *g.Pool != [2]uint64{}
	}
	p.heading("Segments", fmt.Sprintf("       count     reserved    allocated         free      largest free"))
	for i, g := range f.Segments {
		if i == 20 {
			p.printf("  and %s more groups\n", countText(len(f.Segments)-i))
			break
		}
		kind := "other"
		if g.Type != nil {
			kind = clean(*g.Type)
		}
		if g.Expandable {
			kind += "+"
		}
		p.printf("  %-10s %8s %12s %12s %12s %12s", kind, countText(g.Segments), units.Size(g.ReservedBytes),
			units.Size(g.AllocatedBytes), units.Size(g.FreeBytes), units.Size(g.LargestFreeBytes))
		var where []string
		if len(f.Streams) > 1 {
			where = append(where, "stream "+Stream(g.Stream))
		}
		if pools {
			where = append(where, poolText(g.Pool))
		}
		if len(where) > 0 {
			p.printf("\n      %s", strings.Join(where, ", "))
		}
		p.printf("\n")
	}
	if slices.ContainsFunc(f.Segments, func(g facts.Group) bool { return g.Expandable }) {
		p.printf("  + expandable\n")
	}
}

func poolText(pool *[2]uint64) string {
	switch {
	case pool == nil:
		return "pool unknown"
	case *pool == [2]uint64{}:
		return "default pool"
	}
	return fmt.Sprintf("private pool %d,%d", pool[0], pool[1])
}

// Stream writes the handle of a stream.
func Stream(handle uint64) string {
	if handle < 1<<16 {
		return fmt.Sprint(handle)
	}
	return fmt.Sprintf("%#x", handle)
}

func (p *page) ooms(f *facts.Snapshot) {
	if len(f.OOMs) == 0 {
		return
	}
	p.heading("Out of memory", "")
	for i, o := range f.OOMs {
		if i == 5 {
			p.printf("  and %s more: ashlar events --action oom\n", countText(len(f.OOMs)-i))
			break
		}
		p.wrapped("  ", momentText(&o.Moment, f)+":")
		said := fmt.Sprintf("asked for %s; reserved %s", units.Size(o.RequestBytes), units.Size(o.ReservedBytes))
		if o.AllocatedBytes != nil {
			said += ", allocated " + units.Size(*o.AllocatedBytes)
		} else {
			said += ", requested " + units.Size(o.RequestedBytes)
		}
		if o.FreeBytes != nil {
			said += fmt.Sprintf(", free %s in blocks of up to %s", units.Size(*o.FreeBytes), units.Size(*o.LargestFreeBytes))
		}
		said += fmt.Sprintf("; the driver had %s", units.Size(o.DeviceFreeBytes))
		p.wrapped("    ", said)
		if o.Site != "" {
			p.printf("    at %s\n", cut(clean(o.Site), pageWidth-7))
		}
	}
}

func (p *page) holders(f *facts.Snapshot) {
	if len(f.Holders) == 0 {
		return
	}
	p.heading("Who holds it", fmt.Sprintf(" (%s with live blocks at the end)", plural(f.HolderCount, "call stack", "call stacks")))
	for _, h := range f.Holders {
		site := h.Site
		if site == "" {
			site = "(no call stack)"
		}
		p.printf("  %10s %7s  %s\n", units.Size(h.Bytes), countText(h.Blocks)+"x", cut(clean(site), pageWidth-22))
	}
}

func (p *page) missing(f *facts.Snapshot) {
	if len(f.Missing) == 0 {
		return
	}
	p.heading("Not in the file", "")
	for _, m := range f.Missing {
		p.wrapped("  - ", m.Text)
	}
}

func sizeOr(n *uint64) string {
	if n == nil {
		return "-"
	}
	return units.Size(*n)
}

func percentText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100**v)
}

func secondsText(s float64) string { return fmt.Sprintf("%.3f s", s) }

func countText(n int) string { return units.Count(int64(n)) }
