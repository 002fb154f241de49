package text

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Messages writes the facts of the out-of-memory messages in a file, each as a
// table of its numbers and how exact they are.
func Messages(w io.Writer, messages []*stats.Message, style Style) error {
	return each(w, messages, style, (*page).message)
}

func (p *page) message(m *stats.Message) {
	about := "out-of-memory message, line " + countText(m.Line)
	if m.Exception != nil {
		about += ", " + *m.Exception
	}
	if m.Version != nil {
		about += ", PyTorch " + *m.Version
	}
	if m.Library != nil {
		about += ", from " + *m.Library
	}
	if m.Platform != nil && *m.Platform != "CUDA" {
		about += ", " + *m.Platform
	}
	about += "; " + m.Backend + " allocator"
	if m.Backend == "driver" {
		about = about[:len(about)-len("driver allocator")] + "the driver refused, past PyTorch's allocator"
	}
	p.wrapped("  ", about)
	p.heading("Memory", "                        size   exact to")
	rows := 0
	row := func(name string, r *units.Range, note string) {
		if r == nil {
			return
		}
		rows++
		p.line("  %-22s %11s   %-13s %s", name, units.Size(r.Mid), exactness(*r), note)
	}
	device := "device"
	if m.Device != nil {
		device = fmt.Sprintf("GPU %d", *m.Device)
	}
	tried := "the segment, not the tensor"
	if m.Backend != "native" {
		tried = ""
	}
	row("tried to allocate", m.Tried, tried)
	row(device+" in all", m.Total, "")
	row(device+" free", m.Free, "")
	row("limit", m.Limit, "set for this process")
	row("allocated by PyTorch", m.Allocated, "")
	row("active", m.Active, "")
	row("free in private pools", m.PrivatePool, "counted as allocated")
	row("reserved by PyTorch", m.Reserved, computed(m.ReservedComputed, "allocated + unallocated"))
	row("reserved, unallocated", m.Unallocated, computed(m.UnallocatedComputed, "reserved - allocated"))
	for _, proc := range m.Processes {
		name := "this process in all"
		if proc.PID != nil {
			name = fmt.Sprintf("process %d", *proc.PID)
		}
		row(name, &proc.Bytes, "")
	}
	if rows == 0 {
		p.printf("  the message gives no numbers\n")
	}
	if m.ReservedUnallocated != nil {
		p.heading("Fragmentation", "")
		p.wrapped("  "+shareText(m.ReservedUnallocated)+"  ", "of the reserved memory is not allocated: (reserved - allocated) / reserved")
	}
	p.printf("\n")
	p.wrapped("  ", "A message is all that is known here: no peaks, no stacks, no settings. A snapshot has them: torch.cuda.memory._record_memory_history() before, _dump_snapshot() after.")
}

// exactness says how far the true number may be from the printed one.
func exactness(r units.Range) string {
	if r.Exact() {
		return "the byte"
	}
	return "+- " + units.Size(max(r.High-r.Mid, r.Mid-r.Low))
}

func computed(is bool, how string) string {
	if is {
		return how
	}
	return ""
}
