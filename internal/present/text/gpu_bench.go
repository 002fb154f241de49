package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/gpu"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// GPUBench writes what the memory of a GPU costs.
func GPUBench(w io.Writer, b *gpu.Bench, style Style) error {
	p := &page{w: w, style: style}
	p.line("%d: %s, %s", b.Device.Index, Clean(b.Device.Name), gpuDriver(b.DriverVersion, b.CUDAVersion))
	p.wrapped("  ", gpuBenchHow(b))
	p.gpuPairs(b)
	p.gpuAsync(b)
	p.gpuHandles(b)
	p.gpuRanges(b)
	p.gpuEngine(b)
	p.gpuGrowth(b)
	p.gpuCopies(b)
	p.gpuManaged(b)
	p.gpuShared(b)
	p.gpuAccess(b)
	p.gpuTier(b)
	if len(b.Skipped) > 0 {
		p.heading("Left out", "")
		for _, s := range b.Skipped {
			p.wrapped("  "+gpuSkipped(&s)+": ", s.Why)
		}
	}
	if len(b.Reading) > 0 {
		p.heading("What it shows", "")
		p.wrapped("  ", strings.Join(b.Reading, " "))
	}
	return p.err
}

func gpuBenchHow(b *gpu.Bench) string {
	text := fmt.Sprintf("%s free, %s, %.1f s", units.Size(b.FreeBytes), plural(b.CPUs, "CPU", "CPUs"), b.ElapsedS)
	if b.Interrupted {
		text += "; interrupted: this is what is known"
	}
	return text + ". Times are medians over rounds; the middle half is where half of the rounds lie. " +
		"They are the host's, which makes the calls through driver/cuda and waits where the table says so."
}

func gpuSkipped(s *gpu.Skipped) string {
	text := s.Group + " " + s.Case
	if s.Handles != nil && *s.Handles > 1 {
		text += fmt.Sprintf(" %d x", *s.Handles)
	}
	if s.Size != nil {
		text += " " + units.Size(*s.Size)
	}
	if s.Goroutines != nil {
		text += " " + plural(*s.Goroutines, "goroutine", "goroutines")
	}
	if s.Streams != nil {
		text += " " + plural(*s.Streams, "stream", "streams")
	}
	if s.Settings != nil && *s.Settings == gpu.SettingsExpandable {
		text += " expandable"
	}
	return text
}

// table writes lines in columns; the first ones, so many, are aligned to the
// left and the others to the right. Nothing is written if there are only headings.
func (p *page) table(name, rest string, left int, head []string, lines [][]string) {
	if len(lines) == 0 {
		return
	}
	p.heading(name, rest)
	g := grid{left: left, head: [][]string{head}, rows: lines, drop: []int{len(head) - 1, len(head) - 2}}
	for _, l := range g.lines(p.columns()) {
		p.line("%s", l)
	}
}

// spread returns where the middle half of the rounds lies.
func spread(r *gpu.Row) string { return units.Duration(r.Low) + " - " + units.Duration(r.High) }

// often returns how many rounds there were, and of how many each.
func often(r *gpu.Row) string {
	if r.PerRound == 1 {
		return countText(r.Rounds)
	}
	return countText(r.Rounds) + " of " + countText(r.PerRound)
}

// gpuPart returns the median of another part of the same case.
func gpuPart(b *gpu.Bench, of *gpu.Row, part string) string {
	for _, r := range b.Find(of.Group, of.Case, part) {
		if same(r.Size, of.Size) && same(r.Handles, of.Handles) && same(r.Settings, of.Settings) {
			return units.Duration(r.Median)
		}
	}
	return "-"
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func (p *page) gpuPairs(b *gpu.Bench) {
	var lines [][]string
	for _, r := range b.Find(gpu.GroupDriver, gpu.CasePair, gpu.PartAll) {
		lines = append(lines, []string{
			units.Size(*r.Size), gpuPart(b, r, gpu.PartAlloc), gpuPart(b, r, gpu.PartFree), units.Duration(r.Median), spread(r), often(r),
		})
	}
	p.table("The driver", ": cuMemAlloc and cuMemFree, the device idle", 1, []string{"size", "alloc", "free", "pair", "middle half", "rounds"}, lines)
}

func (p *page) gpuAsync(b *gpu.Bench) {
	for _, t := range []struct{ kind, name, rest string }{
		{gpu.CasePair, "The driver's pool", ": cuMemAllocAsync and cuMemFreeAsync; it keeps its memory"},
		{gpu.CaseSyncPair, "The same, waited for", ": release threshold 0, the pool gives its memory back"},
	} {
		var lines [][]string
		for _, r := range b.Find(gpu.GroupAsync, t.kind, gpu.PartAll) {
			lines = append(lines, []string{units.Size(*r.Size), units.Duration(r.Median), spread(r), often(r)})
		}
		p.table(t.name, t.rest, 1, []string{"size", "pair", "middle half", "rounds"}, lines)
	}
}

// gpuSteps returns the calls that map memory.
func gpuSteps() []string {
	return []string{gpu.PartCreate, gpu.PartMap, gpu.PartSetAccess, gpu.PartUnmap, gpu.PartRelease}
}

func (p *page) gpuHandles(b *gpu.Bench) {
	var lines [][]string
	for _, r := range b.Find(gpu.GroupHandle, gpu.CaseMapping, gpu.PartAll) {
		line := []string{units.Size(*r.Size)}
		for _, part := range gpuSteps() {
			line = append(line, gpuPart(b, r, part))
		}
		lines = append(lines, append(line, units.Duration(r.Median), spread(r), often(r)))
	}
	p.table("Virtual memory", ": one handle, one call of each of cuMemCreate, cuMemMap and so on", 1,
		[]string{"handle", "create", "map", "set access", "unmap", "release", "all", "middle half", "rounds"}, lines)
}

func (p *page) gpuRanges(b *gpu.Bench) {
	var lines, each [][]string
	size := ""
	for _, r := range b.Find(gpu.GroupRange, gpu.CaseMapping, gpu.PartAll) {
		size = units.Size(*r.Size)
		line, one := []string{countText(*r.Handles)}, []string{countText(*r.Handles)}
		for _, part := range gpuSteps() {
			line = append(line, gpuPart(b, r, part))
			one = append(one, gpuEach(b, r, part))
		}
		lines = append(lines, append(line, units.Duration(r.Median), spread(r), often(r)))
		each = append(each, append(one, units.Duration(r.PerHandle())))
	}
	p.table("Many handles in one range", ": of "+size+" each; set access and unmap are one call", 1,
		[]string{"handles", "create", "map", "set access", "unmap", "release", "all", "middle half", "rounds"}, lines)
	p.table("The same per handle", "", 1, []string{"handles", "create", "map", "set access", "unmap", "release", "all"}, each)
}

func gpuEach(b *gpu.Bench, of *gpu.Row, part string) string {
	for _, r := range b.Find(of.Group, of.Case, part) {
		if same(r.Handles, of.Handles) {
			return units.Duration(r.PerHandle())
		}
	}
	return "-"
}

// gpuSettings returns a column for the settings of the engine.
func gpuSettings(r *gpu.Row) string {
	if r.Settings != nil && *r.Settings == gpu.SettingsExpandable {
		return "expandable"
	}
	return "default"
}

func (p *page) gpuEngine(b *gpu.Bench) {
	names := map[string]string{
		gpu.CaseHot:          "hot pair, 4 KiB",
		gpu.CaseWindow:       "window, 512 live, 2^uniform(9,25)",
		gpu.CaseRecordStream: "4 KiB with record_stream",
	}
	var lines [][]string
	for _, r := range b.Find(gpu.GroupEngine, "", gpu.PartAll) {
		lines = append(lines, []string{names[r.Case], gpuSettings(r), units.Duration(r.Median), spread(r), often(r)})
	}
	p.table("The engine", ": malloc and free from its cache, over this driver", 2, []string{"case", "segments", "pair", "middle half", "rounds"}, lines)
	lines = nil
	for _, r := range b.Find(gpu.GroupContention, "", gpu.PartAll) {
		lines = append(lines, []string{countText(*r.Goroutines), units.Duration(r.Median), spread(r), often(r)})
	}
	p.table("The engine from several goroutines", ": hot pairs, time per pair over all", 1, []string{"goroutines", "pair", "middle half", "rounds"}, lines)
}

func (p *page) gpuGrowth(b *gpu.Bench) {
	var lines [][]string
	for _, r := range b.Find(gpu.GroupGrowth, "", gpu.PartMalloc) {
		lines = append(lines, []string{units.Size(*r.Size), gpuSettings(r), units.Duration(r.Median), spread(r), gpuPart(b, r, gpu.PartEmpty), often(r)})
	}
	p.table("The engine when it grows", ": malloc without a cached block; free, then empty_cache", 2,
		[]string{"size", "segments", "malloc", "middle half", "empty_cache", "rounds"}, lines)
}

func (p *page) gpuCopies(b *gpu.Bench) {
	names := map[string]string{
		gpu.CasePinned + gpu.PartToDevice: "page-locked host to device", gpu.CasePinned + gpu.PartToHost: "device to page-locked host",
		gpu.CasePageable + gpu.PartToDevice: "ordinary host to device", gpu.CasePageable + gpu.PartToHost: "device to ordinary host",
		gpu.CaseDevice + gpu.PartOnDevice: "within the device",
	}
	rows := b.Find(gpu.GroupCopy, "", "")
	slices.SortStableFunc(rows, func(x, y *gpu.Row) int { return int(int64(*x.Size) - int64(*y.Size)) })
	var lines [][]string
	for _, r := range rows {
		lines = append(lines, []string{names[r.Case+r.Part], units.Size(*r.Size), units.Duration(r.Median), gpu.Rate(r), spread(r), often(r)})
	}
	p.table("Copies", ", each waited for", 1, []string{"from and to", "size", "time", "rate", "middle half", "rounds"}, lines)
}

func (p *page) gpuManaged(b *gpu.Bench) {
	names := map[string]string{
		gpu.CaseExplicit: "copies", gpu.CaseOnDemand: "managed, on demand", gpu.CasePrefetch: "managed, prefetch",
	}
	var lines [][]string
	for _, r := range b.Find(gpu.GroupManaged, "", gpu.PartAll) {
		lines = append(lines, []string{
			units.Size(*r.Size), names[r.Case], gpuPart(b, r, gpu.PartToDevice), gpuPart(b, r, gpu.PartToHost), units.Duration(r.Median), spread(r), often(r),
		})
	}
	p.table("Managed memory against copies", ": there, read and written by kernels, and back", 2,
		[]string{"size", "way", "there", "back", "both", "middle half", "rounds"}, lines)
}
