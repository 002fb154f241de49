package playground

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

func (w *words) rounding(d alloc.Rounding) {
	request, rounded := pair(d.Request, d.Rounded)
	switch {
	case d.Divisions > 0:
		low := d.Unit * d.Divisions
		steps := fmt.Sprintf("roundup_power2_divisions cuts the sizes from %s to %s into %d steps of %s",
			units.Size(low), units.Size(2*low), d.Divisions, units.Size(d.Unit))
		if d.Request == d.Rounded {
			w.say(sayRounding, "none: %s, and %s is one of them.", steps, request)
		} else {
			w.say(sayRounding, "%s up to %s: %s.", request, rounded, steps)
		}
	case d.Request == d.Rounded:
		w.say(sayRounding, "none: %s is a multiple of %s.", request, units.Size(d.Unit))
	case d.Rounded == d.Unit:
		w.say(sayRounding, "%s up to %s, the smallest block.", request, rounded)
	default:
		w.say(sayRounding, "%s up to %s, the next multiple of %s.", request, rounded, units.Size(d.Unit))
	}
}

func (w *words) pool(d alloc.PoolChoice) {
	sign := "≤"
	if d.Large {
		sign = ">"
	}
	pool := poolName(d.Large)
	if d.Pool != (alloc.PoolID{}) {
		pool += " of the private pool"
	}
	w.say(sayPool, "%s, so the %s; in it only free blocks of stream %d are looked at.",
		compare(d.Rounded, sign, d.SmallMax), pool, d.Stream)
}

func (w *words) bestFit(d alloc.BestFit) {
	switch {
	case d.Smallest == d.Block:
		w.say(sayBestFit, "%s is the smallest free one that is large enough.", w.the(d.Block))
	case d.Expandable:
		w.say(sayBestFit, "%s. %s is smaller, but has more unmapped addresses behind it to grow into, so it is kept.",
			w.the(d.Block), capital(w.the(d.Smallest)))
	default:
		w.say(sayBestFit, "%s. Blocks of expandable segments, such as %s, are passed over while expandable_segments is off.",
			w.the(d.Block), w.the(d.Smallest))
	}
}

func (w *words) noFit(d alloc.NoFit) {
	pool := fmt.Sprintf("%s of stream %d", poolName(d.Large), d.Stream)
	switch {
	case d.Reason == alloc.KeptForLarge:
		w.say(sayNoFit, "%s is the smallest that is large enough, but %s, max_split_size_mb: it is kept for requests of that size.",
			w.the(d.Refused), compare(d.Refused.Size, "≥", d.Bound))
	case d.Reason == alloc.TooMuchLarger:
		w.say(sayNoFit, "%s is the smallest that is large enough, but a block this large is not split, and it would waste too much: %s, the request with max_non_split_rounding.",
			w.the(d.Refused), compare(d.Refused.Size, "≥", d.Bound))
	case d.Reason == alloc.OnlyExpandable:
		w.say(sayNoFit, "the free blocks of the %s that are large enough belong to expandable segments, which are off now.", pool)
	case d.Blocks == 0:
		w.say(sayNoFit, "the %s has no free block.", pool)
	case d.Blocks == 1:
		w.say(sayNoFit, "the only free block of the %s has %s, too small for %s.", pool, first(d.Largest, d.Rounded), second(d.Largest, d.Rounded))
	default:
		w.say(sayNoFit, "%s are free in %s of the %s, but the largest has %s, too small for %s.",
			units.Size(d.Free), units.Plural(d.Blocks, "block"), pool, first(d.Largest, d.Rounded), second(d.Largest, d.Rounded))
	}
	if d.Elsewhere.Size >= d.Rounded {
		w.say(sayNoFit, "%s is free and large enough, but it belongs to stream %d: work there may still touch it.",
			w.the(d.Elsewhere), d.OtherStream)
	}
}

func first(a, b uint64) string {
	text, _ := pair(a, b)
	return text
}

func second(a, b uint64) string {
	_, text := pair(a, b)
	return text
}

func (w *words) splitting(d alloc.Splitting) {
	w.block = d.Block.Size
	if d.Reason.Split() {
		w.block = d.Rounded
	}
	rest := units.Size(d.Rest)
	switch {
	case d.Rest == 0:
		w.say(sayNoSplit, "the block has just the size that is needed.")
	case d.Reason == alloc.RestAboveBound:
		w.say(saySplit, "remainder %s, so it is split; the rest stays free.", compare(d.Rest, ">", d.Bound))
	case d.Reason == alloc.RestIsBlock:
		w.say(saySplit, "remainder %s, the smallest block, so it is split; the rest stays free.", compare(d.Rest, "≥", d.Bound))
	case d.Reason == alloc.RestNotAboveBound:
		w.say(sayNoSplit, "remainder %s, so the whole block is handed out.", compare(d.Rest, "≤", d.Bound))
	case d.Reason == alloc.RestBelowMinimum:
		w.say(sayNoSplit, "remainder %s, the smallest block, so the whole block is handed out.", compare(d.Rest, "<", d.Bound))
	case d.Reason == alloc.RequestIsLarge:
		w.say(sayNoSplit, "requests of max_split_size_mb or more, here %s, take the whole block: %s of it are not needed.",
			compare(d.Rounded, "≥", d.Bound), rest)
	default:
		w.say(sayNoSplit, "blocks of this pool are never split: %s are not needed.", rest)
	}
}

func (w *words) segmentChoice(d alloc.SegmentChoice) {
	switch {
	case d.Expandable:
		if d.Limited {
			w.say(saySegment, "against the limit counts a segment of %s; but memory is mapped into an expandable segment.", units.Size(d.Segment))
		}
	case d.Rule == alloc.SmallSegments:
		w.say(saySegment, "segments of the small pool all have %s.", units.Size(d.Segment))
	case d.Rule == alloc.MediumSegments:
		w.say(saySegment, "%s, so a segment of %s, which others can share (large_segment_size_mb).", compare(d.Rounded, "<", d.To), units.Size(d.Segment))
	default:
		w.say(saySegment, "%s, so a segment of its own, a multiple of %s: %s.", compare(d.Rounded, "≥", d.From), units.Size(d.Unit), units.Size(d.Segment))
	}
}

func (w *words) driverRefusal(d alloc.DriverRefusal) {
	device := w.game.runner.Device
	what := "cudaMalloc"
	if d.Mapping {
		what = "mapping"
	}
	held := device.Held()
	if left := device.TotalMemory() - min(held, device.TotalMemory()); w.game.shared && left >= d.Size {
		w.say(sayTenants, "%s of %s is refused: what the others have, and what is guaranteed to them, leaves too little.", what, units.Size(d.Size))
		return
	}
	w.say(sayDriver, "%s of %s is refused: %s of the device's %s are left.", what, units.Size(d.Size),
		units.Size(device.TotalMemory()-min(held, device.TotalMemory())), units.Size(device.TotalMemory()))
}

func (w *words) growth(d alloc.Growth) {
	switch {
	case d.Free > 0:
		w.say(sayGrowth, "the free %s %s can be extended: unmapped addresses follow.", units.Size(d.Free), w.where(d.Addr))
	default:
		if _, offset, ok := w.game.runner.Place(d.Addr); ok && offset > 0 {
			w.say(sayGrowth, "the expandable segment goes on %s, with unmapped addresses.", w.where(d.Addr))
		}
	}
}

func (w *words) mapping(d alloc.Mapping) {
	missing, mapped := pair(d.Missing, d.Mapped.Size)
	if d.Missing == d.Mapped.Size {
		w.say(sayMapping, "%s are mapped %s, whole granules of %s.", mapped, w.where(d.Mapped.Addr), units.Size(d.Granule))
	} else {
		w.say(sayMapping, "%s are missing; %s are mapped %s, whole granules of %s.", missing, mapped, w.where(d.Mapped.Addr), units.Size(d.Granule))
	}
}

// sayResult says what a request got.
func (g *game) sayResult(name string, addr uint64) {
	w := g.words
	if w == nil {
		return
	}
	w.flush()
	w.say(sayHandedOut, "%s is %s %s.", name, units.Size(w.block), w.where(addr))
}

// sayFailure says what a failed request would have needed.
func (g *game) sayFailure(answer string) {
	w := g.words
	if w == nil {
		return
	}
	w.flush()
	if g.oom == nil { // the driver would not do it
		_, problem, _ := strings.Cut(strings.TrimSpace(answer), "error: ")
		if p := alloc.MappingProblem(g.runner.Allocator.Settings()); p != "" {
			problem = p
		}
		w.say(sayDriver, "the request fails: %s.", problem)
		return
	}
	m := g.moment()
	text := fmt.Sprintf("nothing gives %s in one piece", units.Size(g.oom.Rounded))
	fits := g.runner.Refused == nil && g.runner.Allocator.Fits(alloc.PoolID{}, g.oom.Requested, g.oom.Stream)
	if fits {
		text = "no more memory can be had"
	}
	switch {
	case m.FreeBytes >= g.oom.Rounded && m.LargestFreeBytes < g.oom.Rounded:
		text += fmt.Sprintf(", though %s are free, in %s of at most %s", units.Size(m.FreeBytes), units.Plural(m.FreeBlocks, "block"), units.Size(m.LargestFreeBytes))
	case m.FreeBytes > 0:
		text += fmt.Sprintf("; %s of the reserved %s are free", units.Size(m.FreeBytes), units.Size(m.ReservedBytes))
	case m.ReservedBytes == 0:
		text += "; nothing is reserved yet"
	default:
		text += "; all that is reserved is in use"
	}
	w.say(sayOOM, "%s.", text)
	if fits {
		w.say(sayNoSearch, "a block that would fit is free now, but PyTorch does not search again after a release.")
	}
}

// saySettings says which settings are in force from now on.
func (g *game) saySettings(err error) {
	text := g.settings().String()
	if text == "" {
		text = "the defaults"
	}
	if err != nil {
		g.say(sayConf, "%v. What was read before that holds: %s.", err, text)
		return
	}
	g.say(sayConf, "from here on %s. What is reserved keeps its shape; only what comes is treated differently.", text)
}

func (g *game) sayLimit() {
	limit, limited := g.runner.Allocator.Limit()
	if !limited {
		g.say(sayLimitRule, "from here on there is none: only the device ends what may be reserved.")
		return
	}
	reserved := g.runner.Allocator.Serial().Totals().Reserved
	text := fmt.Sprintf("from here on at most %s may be reserved", units.Size(limit))
	if reserved > limit {
		text += fmt.Sprintf("; %s are reserved, which stay, but no more is given", units.Size(reserved))
	}
	g.say(sayLimitRule, "%s.", text)
}

// sayEmpty says that a release, whose events are given, released nothing.
func (g *game) sayEmpty(events string) {
	if g.refused(events) {
		return
	}
	if g.words != nil && events == "" {
		g.words.flush()
		g.say(sayNothing, "no memory goes back to the driver.")
	}
	g.sayPrivateCache()
}

func (g *game) sayComplete(stream string) {
	if stream == "all" {
		g.say(sayWork, "all streams have done their work. The allocator looks at its events when the next request comes.")
		return
	}
	g.say(sayWork, "stream %s has done its work. The allocator looks at its events when the next request comes.", stream)
}
