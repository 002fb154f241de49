package text

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hostmem/detect"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// HostDetect writes which malloc a process uses.
func HostDetect(w io.Writer, r *detect.Result, style Style) error {
	p := &page{w: w, style: style}
	p.fitted(fmt.Sprintf("process %d: ", r.PID), Clean(strings.Join(r.Command, " ")))
	p.hostFinding(&r.Finding)
	for _, n := range r.Notes {
		p.wrapped("  note: ", n)
	}
	if r.Exit != nil {
		p.wrapped("  note: ", fmt.Sprintf("it ended by itself after %.2f s: %s", r.Exit.Seconds, r.Exit.Text()))
	}
	p.hostMemory(r)
	p.hostVariables(r)
	if len(r.Others) > 0 {
		p.heading("Other allocators in it", "")
		for i := range r.Others {
			o := &r.Others[i]
			p.wrapped("  "+AllocatorText(o)+": ", o.Object+": "+o.How)
		}
	}
	p.hostChildren(r)
	p.hostGrowth(r.Growth)
	return p.err
}

// AllocatorText returns an allocator with its version.
func AllocatorText(f *detect.Finding) string {
	switch {
	case f.Allocator == detect.Go && f.Version != nil:
		return "Go runtime " + strings.TrimPrefix(Clean(*f.Version), "go")
	case f.Allocator == detect.Go:
		return "Go runtime"
	case f.Version != nil:
		return f.Allocator + " " + Clean(*f.Version)
	}
	return f.Allocator
}

func (p *page) hostFinding(f *detect.Finding) {
	name := p.style.bold(AllocatorText(f))
	if f.Confidence == detect.NotCertain {
		p.line("  malloc: %s", name)
	} else {
		p.line("  malloc: %s, %s", name, f.Confidence)
	}
	if f.Object != "" {
		p.name("  object: ", f.Object)
	}
	p.wrapped("  how: ", f.How)
}

func (p *page) hostMemory(r *detect.Result) {
	p.heading("Memory", "")
	p.wrapped(sizeLead(r.RSSBytes), "in memory (RSS), with what it shares with others")
	p.wrapped(sizeLead(r.PSSBytes), "its share (PSS)")
	p.wrapped(sizeLead(r.AnonymousBytes), "anonymous: not of a file")
	if r.LazyFreeBytes > 0 {
		p.wrapped(sizeLead(r.LazyFreeBytes), "of RSS given back already, to be taken when memory is short (LazyFree)")
	}
	if r.HugePageBytes > 0 {
		p.wrapped(sizeLead(r.HugePageBytes), "in huge pages")
	}
	if r.SwapBytes > 0 {
		p.wrapped(sizeLead(r.SwapBytes), "swapped out")
	}
	p.line("  RSS by place:")
	p.wrapped(sizeLead(r.HeapBytes), "heap, grown by brk")
	arenas := ""
	if r.ArenaBytes != nil && *r.ArenaBytes > 0 {
		arenas = ", of it " + units.Size(*r.ArenaBytes) + " in arenas of glibc"
	}
	p.wrapped(sizeLead(r.MmapBytes), "mmap, anonymous"+arenas)
	p.wrapped(sizeLead(r.FileBytes), "files: code and mapped data")
	p.wrapped(sizeLead(r.StackBytes), "stack of the first thread")
	if r.SharedMem > 0 {
		p.wrapped(sizeLead(r.SharedMem), "shared memory")
	}
	text := plural(r.Threads, "thread", "threads")
	if r.Arenas != nil {
		text += ", " + plural(*r.Arenas, "arena", "arenas")
	}
	p.line("  %s", text)
}

func sizeLead(n uint64) string { return fmt.Sprintf("  %10s  ", units.Size(n)) }

func (p *page) hostVariables(r *detect.Result) {
	if len(r.Env) == 0 {
		return
	}
	p.heading("Environment", "")
	for _, v := range r.Env {
		p.name("  "+Clean(v.Name)+"=", v.Value)
		for _, i := range r.IgnoredEnv {
			if i.Name == v.Name {
				p.wrapped("    no effect: ", i.Why)
			}
		}
	}
}

func (p *page) hostChildren(r *detect.Result) {
	if len(r.Children) == 0 {
		return
	}
	p.heading("Descendants", "")
	for i := range r.Children {
		c := &r.Children[i]
		p.fitted(fmt.Sprintf("  %7d  %10s  %-16s  ", c.PID, units.Size(c.RSSBytes), AllocatorText(&c.Finding)),
			Clean(strings.Join(append([]string{filepath.Base(c.Executable)}, c.Command[min(1, len(c.Command)):]...), " ")))
	}
}

func (p *page) hostGrowth(g *detect.Growth) {
	if g == nil {
		return
	}
	p.heading("Growth", fmt.Sprintf(" in %.1f s, %s", g.Seconds, plural(g.Samples, "sample", "samples")))
	p.wrapped("  ", fmt.Sprintf("RSS %s at first, %s at last (%s); between %s and %s", units.Size(g.FirstRSSBytes), units.Size(g.LastRSSBytes),
		units.Delta(int64(g.LastRSSBytes)-int64(g.FirstRSSBytes)), units.Size(g.MinRSSBytes), units.Size(g.MaxRSSBytes)))
	p.line("  the line that fits best: %s an hour", units.Delta(int64(g.BytesPerHour)))
	if g.Ended {
		p.line("  the process ended before the time was over")
	}
}
