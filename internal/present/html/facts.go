package html

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// number is one of the few that everybody looks for first.
type number struct {
	Label, Value, Under string
	Size                *size
}

// fact is a line of what is known about the run.
type fact struct{ Name, Text string }

type setting struct{ Key, Value, Meaning string }

// device is one of the file's devices.
type device struct {
	Name, Events, Segments string
	Reserved, Allocated    size
	Notes                  string
}

// statistics are the totals of a file and how they change.
type statistics struct {
	Levels        []level
	Peaks         bool // the file has events
	Blocks        string
	Free          string
	Fragmentation []row
	Groups        []group
	LeftGroups    string
	Actions       []fact
}

type level struct {
	Name      string
	Now, Peak *size
	At        string
}

// group is memory in segments of one kind.
type group struct {
	Kind, Stream, Pool, Count        string
	Reserved, Allocated, Free, Large size
}

// maxGroups is how many kinds of segments are listed.
const maxGroups = 40

func (p *page) facts(s *subject, d detail) {
	f := s.Facts
	if f == nil {
		return
	}
	p.About = d.say(text.CourseText(f))
	p.numbers(s, f, d)
	p.run(s, f, d)
	for _, x := range f.Settings.NonDefault[:min(len(f.Settings.NonDefault), maxGroups)] {
		p.Settings = append(p.Settings, setting{d.clip(x.Key), d.clip(x.Value), d.say(x.Meaning)})
	}
	if len(f.Devices) > 1 {
		p.devices(f)
	}
	p.Stats = newStatistics(f, d)
}

// numbers are the key numbers.
func (p *page) numbers(s *subject, f *stats.Snapshot, d detail) {
	add := func(label, field string, n *uint64, under string) {
		if n != nil {
			p.Numbers = append(p.Numbers, number{Label: label, Size: sizeOf(field, n), Under: d.say(under)})
		}
	}
	m := &f.Memory
	most := " at most"
	if m.Reserved.AtLeast {
		most = ", at least"
	}
	add("Reserved"+most, "memory.reserved.peak_bytes", m.Reserved.Peak, text.PeakText(&m.Reserved))
	if m.Allocated.Peak != nil {
		add("Allocated"+most, "memory.allocated.peak_bytes", m.Allocated.Peak, text.PeakText(&m.Allocated))
	} else {
		add("Requested"+most, "memory.requested.peak_bytes", m.Requested.Peak, text.PeakText(&m.Requested))
	}
	if s.Explain != nil && s.Explain.Failure != nil {
		v := &s.Explain.Evidence
		add("Request that failed", "evidence.request_bytes", v.Request, "")
		add("Allocated then", "evidence.live_bytes", v.Live, "")
		if v.LargestFree != nil && v.Free != nil {
			add("Largest free block", "evidence.largest_free_bytes", v.LargestFree, "of "+units.Size(*v.Free)+" reserved and free")
		}
		if l := s.Explain.Limit; l.Max != nil {
			under := l.Source
			if l.Min != nil && units.Size(*l.Min) != units.Size(*l.Max) {
				under += ", at least " + units.Size(*l.Min)
			}
			add("Limit", "limit.max_bytes", l.Max, under)
		}
		return
	}
	add("Reserved at the end", "memory.reserved.now_bytes", m.Reserved.Now, "")
	add("Allocated at the end", "memory.allocated.now_bytes", m.Allocated.Now, "")
	free := m.FreeBytes
	add("Free at the end", "memory.free_bytes", &free, "largest block "+units.Size(m.LargestFreeBytes))
}

// run says what the file is and under which circumstances it was written.
func (p *page) run(s *subject, f *stats.Snapshot, d detail) {
	add := func(name, format string, args ...any) {
		p.Run = append(p.Run, fact{name, d.say(fmt.Sprintf(format, args...))})
	}
	kind := f.Format
	if f.Writer != nil {
		kind += " by " + *f.Writer
	}
	kind += ", " + f.PyTorch.String()
	if f.Compression != nil {
		kind += ", " + *f.Compression
	}
	if f.FileBytes != nil {
		kind += ", " + units.Size(uint64(*f.FileBytes))
	} else {
		kind += ", " + units.Size(uint64(f.UnpackedBytes)) + " unpacked"
	}
	add("File", "%s", s.Name)
	add("Kind", "snapshot: %s", kind)
	if f.DeviceReason != nil {
		add("Device", "%s", *f.DeviceReason)
	} else if f.Device != nil {
		add("Device", "%d", *f.Device)
	}
	p.recorder(s, add)
	if f.FirstTime != nil && f.Span != nil {
		add("Recorded", "%s, for %.3f s", time.UnixMicro(*f.FirstTime).UTC().Format("2006-01-02 15:04:05 UTC"), float64(*f.Span)/1e6)
	}
	add("Events", "%s", units.Count(int64(f.Events)))
	if f.Steps != nil {
		add("Steps", "%s complete, by %s", units.Count(int64(f.Steps.Complete)), f.Steps.Annotation)
	} else if list := s.analysis.Steps; len(list.List) > 0 {
		add("Steps", "%s complete, %s", units.Count(int64(list.Complete())), list.Detail)
	}
	if n := len(f.Streams); n > 1 {
		add("Streams", "%s", units.Count(int64(n)))
	}
	if n := len(f.OOMs); n > 0 || f.Events > 0 {
		add("Failed requests", "%s", units.Count(int64(n)))
	}
	switch {
	case !f.Settings.Known:
		add("Settings", "not in the file")
	case len(f.Settings.NonDefault) == 0:
		add("Settings", "PyTorch's defaults")
	case f.Settings.Conf != nil:
		add("Settings", "%s", *f.Settings.Conf)
	}
	if f.Events > 0 && s.begunLate() {
		add("Beginning", "recording began in the middle of the run; the state before it is rebuilt from the end")
	}
	if f.Replay != nil {
		add("Replay", "%s", text.ReplayText(f.Replay))
	}
}

// recorder is what python/ashlar.py wrote beside the snapshot.
func (p *page) recorder(s *subject, add func(name, format string, args ...any)) {
	x := s.Run.Facts
	if x == nil {
		return
	}
	if d := x.DeviceFacts(s.trace.Device); d != nil {
		text := d.Name
		if d.TotalBytes != nil {
			text += ", " + units.Size(*d.TotalBytes)
		}
		if d.LimitBytes != nil {
			text += ", limit " + units.Size(*d.LimitBytes)
		}
		add("GPU", "%s", strings.TrimPrefix(text, ", "))
	}
	if x.Rank != nil {
		add("Rank", "%d", *x.Rank)
	}
	if x.Torch != "" {
		versions := "PyTorch " + x.Torch
		if x.CUDA != "" {
			versions += ", CUDA " + x.CUDA
		}
		if x.HIP != "" {
			versions += ", HIP " + x.HIP
		}
		add("Versions", "%s", versions)
	}
	if x.Note != "" {
		add("Note", "%s", x.Note)
	}
}

func (p *page) devices(f *stats.Snapshot) {
	for i, x := range f.Devices {
		if i == maxGroups {
			break
		}
		one := device{
			Name: "host", Events: units.Count(int64(x.Events)), Segments: units.Count(int64(x.Segments)),
			Reserved: newSize("", x.ReservedBytes), Allocated: newSize("", x.AllocatedBytes),
		}
		if x.Device != nil {
			one.Name = fmt.Sprint(*x.Device)
		}
		var notes []string
		if x.Chosen {
			notes = append(notes, "this report")
		}
		if x.OOMs > 0 {
			notes = append(notes, text.Plural(x.OOMs, "failed request", "failed requests"))
		}
		one.Notes = strings.Join(notes, ", ")
		p.Devices = append(p.Devices, one)
	}
}

func newStatistics(f *stats.Snapshot, d detail) *statistics {
	m := &f.Memory
	s := &statistics{
		Peaks: f.Events > 0, Fragmentation: newRows(text.Fragmentation(&f.Fragmentation), d),
		Blocks: units.Count(int64(m.Blocks.Now)), Free: units.Size(m.FreeBytes) + ", the largest block " + units.Size(m.LargestFreeBytes),
	}
	add := func(name string, l *stats.Level) {
		one := level{Name: name, Now: sizeOf("memory."+name+".now_bytes", l.Now), Peak: sizeOf("memory."+name+".peak_bytes", l.Peak)}
		one.At = d.clip(text.PeakText(l))
		s.Levels = append(s.Levels, one)
	}
	add("reserved", &m.Reserved)
	add("allocated", &m.Allocated)
	add("active", &m.Active)
	add("requested", &m.Requested)
	if m.Pending.Peak != nil && *m.Pending.Peak > 0 {
		add("pending", &m.Pending)
	}
	for i, g := range f.Segments {
		if i == maxGroups {
			s.LeftGroups = "and " + text.Plural(len(f.Segments)-i, "more group", "more groups")
			break
		}
		s.Groups = append(s.Groups, newGroup(&g, d))
	}
	names := make([]string, 0, len(f.Actions))
	for name := range f.Actions {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names[:min(len(names), maxGroups)] {
		s.Actions = append(s.Actions, fact{d.clip(name), units.Count(int64(f.Actions[name]))})
	}
	return s
}

func newGroup(g *stats.Group, d detail) group {
	out := group{
		Kind: "other", Stream: text.Stream(g.Stream), Pool: "?", Count: units.Count(int64(g.Segments)),
		Reserved: newSize("", g.ReservedBytes), Allocated: newSize("", g.AllocatedBytes), Free: newSize("", g.FreeBytes), Large: newSize("", g.LargestFreeBytes),
	}
	if g.Type != nil {
		out.Kind = d.clip(*g.Type)
	}
	if g.Expandable {
		out.Kind += ", expandable"
	}
	if g.Pool != nil {
		out.Pool = fmt.Sprintf("%d,%d", g.Pool[0], g.Pool[1])
		if *g.Pool == [2]uint64{} {
			out.Pool = "default"
		}
	}
	return out
}
