package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Stats writes what an input says about memory.
func Stats(w io.Writer, d *stats.Document, style Style) error {
	head := &page{w: w, style: style}
	head.warning(d.Warning)
	if d.Snapshot != nil {
		return cmp.Or(head.err, Snapshot(w, d.File, d.Snapshot, style))
	}
	if head.name("", d.File); head.err != nil {
		return head.err
	}
	if err := Dumps(w, d.Dumps, style); err != nil {
		return err
	}
	if len(d.Dumps) > 0 && len(d.Messages) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return Messages(w, d.Messages, style)
}

// Snapshot writes the facts about a snapshot.
func Snapshot(w io.Writer, name string, f *stats.Snapshot, style Style) error {
	p := &page{w: w, style: style}
	p.file(name, f)
	p.settings(&f.Settings)
	p.devices(f)
	p.memory(f)
	p.ooms(f)
	p.holders(f)
	p.fragmentation(f)
	p.emptyCache(f.EmptyCache, "at the end")
	p.traffic(f)
	p.readings(f.Readings)
	p.segments(f)
	p.missing(f)
	return p.err
}

// file says what the file is and what it is about.
func (p *page) file(name string, f *stats.Snapshot) {
	kind := []string{"snapshot: " + f.Format}
	if f.Writer != nil {
		kind[0] += " by " + *f.Writer
	}
	size := units.Size(uint64(f.UnpackedBytes))
	if f.FileBytes != nil {
		size = units.Size(uint64(*f.FileBytes))
	}
	if f.Compression != nil {
		kind = append(kind, *f.Compression)
		if f.FileBytes != nil {
			size += " (" + units.Size(uint64(f.UnpackedBytes)) + " unpacked)"
		}
	}
	p.name("", name)
	p.wrapped("  ", strings.Join(append(kind, size, f.PyTorch.String()), ", "))
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
	if f.Replay != nil {
		p.wrapped("  ", "replayed: "+replayText(f.Replay))
	}
}

// replayText says how well the replay matched.
func replayText(r *stats.Replay) string {
	switch all := countText(r.Events); {
	case r.Identical && !r.SegmentsIdentical:
		return "all " + all + " events identical; the file ends within them, so later peaks may be higher"
	case r.Identical && r.Start == start.Rebuilt:
		return "all " + all + " events identical, so sizes of blocks and peaks since the first event are exact"
	case r.Identical:
		return "all " + all + " events identical, so sizes of blocks and peaks are exact"
	case r.IdenticalEvents == r.Events:
		return "all " + all + " events identical, but not the segments at the end"
	default:
		return countText(r.IdenticalEvents) + " of " + all + " events identical"
	}
}

// course returns what happened, in one sentence.
func course(f *stats.Snapshot) string {
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
		parts = append(parts, plural(n, "OOM", "OOMs"))
	}
	return strings.Join(parts, "; ")
}

// devices lists the devices if there are several.
func (p *page) devices(f *stats.Snapshot) {
	if len(f.Devices) < 2 {
		return
	}
	p.heading("Devices", "      events  segments    reserved   allocated")
	for _, d := range f.Devices {
		name, mark := "host", " "
		if d.Device != nil {
			name = fmt.Sprint(*d.Device)
		}
		var notes []string
		if d.Chosen {
			mark = "*"
			notes = append(notes, "shown here")
		}
		if d.OOMs > 0 {
			notes = append(notes, plural(d.OOMs, "OOM", "OOMs"))
		}
		p.line("%s %-4s %12s %9s %11s %11s  %s", mark, name, countText(d.Events), countText(d.Segments),
			units.Size(d.ReservedBytes), units.Size(d.AllocatedBytes), strings.Join(notes, ", "))
	}
}

func (p *page) settings(s *stats.Settings) {
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

func (p *page) memory(f *stats.Snapshot) {
	m := &f.Memory
	heading := "      at the end"
	if f.Replay != nil && f.Replay.Identical && !f.Replay.SegmentsIdentical {
		heading = "     when dumped" // the state is that of a later moment than the events
	}
	if f.Events > 0 {
		heading += "        peak  at event      time"
	}
	p.heading("Memory", heading)
	row := func(name, now, peak string, at *timeline.Moment) {
		p.fitted(fmt.Sprintf("  %-9s %11s %11s ", name, now, peak), peakText(at, f))
	}
	level := func(name string, l stats.Level) {
		if l.Peak != nil && l.At == nil {
			p.line("  %-9s %11s %11s    when dumped, after these events", name, sizeOr(l.Now), sizeOr(l.Peak))
			return
		}
		row(name, sizeOr(l.Now), sizeOr(l.Peak), l.At)
	}
	level("reserved", m.Reserved)
	level("allocated", m.Allocated)
	level("active", m.Active)
	level("requested", m.Requested)
	if (m.Pending.Now != nil && *m.Pending.Now > 0) || (m.Pending.Peak != nil && *m.Pending.Peak > 0) {
		level("pending", m.Pending)
	}
	blocks := "-"
	if m.Blocks.Peak != nil {
		blocks = countText(*m.Blocks.Peak)
	}
	row("blocks", countText(m.Blocks.Now), blocks, m.Blocks.At)
	if m.FreeBytes > 0 || f.Segments != nil {
		p.line("  %-9s %11s   largest free block %s", "free", units.Size(m.FreeBytes), units.Size(m.LargestFreeBytes))
	}
}

// peakText is momentText in columns.
func peakText(m *timeline.Moment, f *stats.Snapshot) string {
	switch {
	case m == nil:
		return ""
	case m.Event == nil:
		return "   before the first event"
	}
	since := ""
	if m.Since != nil {
		since = secondsText(*m.Since)
	}
	return fmt.Sprintf("%9s %9s  %s", countText(*m.Event), since, placeText(m, f))
}

// momentText says when something was.
func momentText(m *timeline.Moment, f *stats.Snapshot) string {
	s := "event " + countText(*m.Event)
	if m.Since != nil {
		s += ", " + secondsText(*m.Since)
	}
	if place := placeText(m, f); place != "" {
		s += ", " + place
	}
	return s
}

// placeText says where in the program a moment lies.
func placeText(m *timeline.Moment, f *stats.Snapshot) string {
	var parts []string
	if m.Step != nil {
		parts = append(parts, fmt.Sprintf("step %d", *m.Step))
	}
	if m.Annotation != nil {
		// Behind # stands which optimizer or which step.
		name, _, found := strings.Cut(*m.Annotation, "#")
		if !found || name == "" {
			name = *m.Annotation
		}
		if f.Steps == nil || name != f.Steps.Annotation {
			parts = append(parts, Clean(name))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *page) fragmentation(f *stats.Snapshot) {
	p.heading("Fragmentation", "")
	for _, r := range Fragmentation(&f.Fragmentation) {
		p.printf("  %7s  %-14s %s\n", r.Value, r.Mark, r.Text)
	}
}

func (p *page) segments(f *stats.Snapshot) {
	if len(f.Segments) == 0 {
		return
	}
	pools, stream := false, len("stream")
	for _, g := range f.Segments {
		stream = max(stream, len(Stream(g.Stream)))
		pools = pools || g.Pool != nil && *g.Pool != [2]uint64{}
	}
	const numbers = " %5s %10s %10s %10s %10s"
	columns := func(kind, handle, pool string) string {
		s := fmt.Sprintf("%-7s", kind)
		if len(f.Streams) > 1 {
			s += fmt.Sprintf(" %-*s", stream, handle)
		}
		if pools {
			s += fmt.Sprintf(" %-5s", pool)
		}
		return s
	}
	p.heading("Segments", columns("", "stream", "pool")[6:]+fmt.Sprintf(numbers, "count", "reserved", "allocated", "free", "largest"))
	for i, g := range f.Segments {
		if i == 20 {
			p.printf("  and %s more groups\n", countText(len(f.Segments)-i))
			break
		}
		kind := "other"
		if g.Type != nil {
			kind = Clean(*g.Type)
		}
		if g.Expandable {
			kind += "+"
		}
		pool := "?"
		if g.Pool != nil {
			pool = fmt.Sprintf("%d,%d", g.Pool[0], g.Pool[1])
		}
		p.line("  %s"+numbers, columns(kind, Stream(g.Stream), pool), countText(g.Segments), units.Size(g.ReservedBytes),
			units.Size(g.AllocatedBytes), units.Size(g.FreeBytes), units.Size(g.LargestFreeBytes))
	}
	if slices.ContainsFunc(f.Segments, func(g stats.Group) bool { return g.Expandable }) {
		p.printf("  + expandable\n")
	}
	if pools {
		p.printf("  pool 0,0 is the default, the others are private: CUDA graphs and MemPools\n")
	}
}

// Stream writes the handle of a stream.
func Stream(handle uint64) string {
	if handle < 1<<16 {
		return fmt.Sprint(handle)
	}
	return fmt.Sprintf("%#x", handle)
}

func (p *page) ooms(f *stats.Snapshot) {
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
		said := fmt.Sprintf("a request for %s; reserved %s", units.Size(o.RequestBytes), units.Size(o.ReservedBytes))
		if o.AllocatedBytes != nil {
			said += fmt.Sprintf(", allocated %s, unallocated %s", units.Size(*o.AllocatedBytes), units.Size(*o.UnallocatedBytes))
		} else {
			said += ", requested " + units.Size(o.RequestedBytes)
		}
		switch {
		case o.FreeBytes == nil:
		case o.UnallocatedBytes != nil && *o.UnallocatedBytes == *o.FreeBytes:
			said += " in free blocks of up to " + units.Size(*o.LargestFreeBytes)
		default:
			said += fmt.Sprintf(", free %s in blocks of up to %s", units.Size(*o.FreeBytes), units.Size(*o.LargestFreeBytes))
		}
		said += fmt.Sprintf("; the driver had %s free", units.Size(o.DeviceFreeBytes))
		p.wrapped("    ", said)
		if o.Frames != nil {
			p.printf("    at %s\n", siteText(o.Site, p.columns()-7))
		}
	}
}

func (p *page) holders(f *stats.Snapshot) {
	if len(f.Holders) == 0 {
		return
	}
	among := ""
	if f.HolderCount > 0 {
		among = fmt.Sprintf(" (%s)", plural(f.HolderCount, "call stack", "call stacks"))
	}
	p.heading("Who holds it at the end", among)
	for _, h := range f.Holders {
		site := "(no call stack)"
		if h.Frames != nil {
			site = siteText(h.Site, p.columns()-27)
		}
		share := ""
		if active := f.Memory.Active.Now; active != nil && *active > 0 {
			share = fmt.Sprintf("%.0f %%", 100*float64(h.Bytes)/float64(*active))
		}
		p.printf("  %10s %5s %6s  %s\n", units.Size(h.Bytes), share, countText(h.Blocks)+"x", site)
	}
}

func (p *page) missing(f *stats.Snapshot) {
	if len(f.Missing) == 0 {
		return
	}
	p.heading("Not in the file", "")
	for _, m := range f.Missing {
		p.wrapped("  - ", m.Text)
	}
}

// siteText writes a site in at most n columns.
func siteText(s timeline.Site, n int) string { return cut(Clean(s.Fit(n)), n) }

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

func secondsText(us int64) string { return fmt.Sprintf("%.3f s", float64(us)/1e6) }

func countText(n int) string { return units.Count(int64(n)) }
