package gpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// read says in sentences what the rows show. A sentence whose rows are not
// there is left out.
func (b *Bench) read() []string {
	reading := []string{}
	for _, say := range []func() string{b.readPairs, b.readGrowth, b.readRange, b.readContention, b.readCopies, b.readManaged, b.readThreads, b.readAccess, b.readTier} {
		if text := say(); text != "" {
			reading = append(reading, text)
		}
	}
	return reading
}

// engine is the hot pair of the engine with the default settings.
func (b *Bench) engine() *Row {
	for _, r := range b.Find(GroupEngine, CaseHot, PartAll) {
		return r
	}
	return nil
}

// readPairs compares the ways to a block of one size.
func (b *Bench) readPairs() string {
	hot := b.engine()
	plain := b.find(GroupDriver, CasePair, PartAll, readingSize)
	if hot == nil || plain == nil {
		return ""
	}
	text := fmt.Sprintf("The driver takes %s for cuMemAlloc and cuMemFree of %s, as long as %s of the engine (%s each, from its cache)",
		units.Duration(plain.Median), units.Size(*plain.Size), pairs(plain.Median/hot.Median), units.Duration(hot.Median))
	if async := b.find(GroupAsync, CasePair, PartAll, readingSize); async != nil {
		text += fmt.Sprintf("; its own pool takes %s, as long as %s", units.Duration(async.Median), pairs(async.Median/hot.Median))
	}
	return text + "."
}

// readGrowth says what a request costs that the cache cannot serve.
func (b *Bench) readGrowth() string {
	var plain, expandable *Row
	for _, r := range b.Find(GroupGrowth, "", PartMalloc) {
		switch {
		case *r.Size != readingSize:
		case *r.Settings == SettingsExpandable:
			expandable = r
		default:
			plain = r
		}
	}
	hot := b.engine()
	if plain == nil || expandable == nil || hot == nil {
		return ""
	}
	return fmt.Sprintf("A malloc of %s for which the engine needs new memory takes %s with a segment of its own and %s with an expandable segment: "+
		"as long as %s and %s from the cache.", units.Size(readingSize), units.Duration(plain.Median), units.Duration(expandable.Median),
		pairs(plain.Median/hot.Median), pairs(expandable.Median/hot.Median))
}

// readRange compares many handles with one of about the same size.
func (b *Bench) readRange() string {
	many := last(b.Find(GroupRange, "", PartSetAccess))
	if many == nil {
		return ""
	}
	text := fmt.Sprintf("Setting access to %s handles of %s in one call takes %s, %s a handle", units.Count(int64(*many.Handles)),
		units.Size(*many.Size), units.Duration(many.Median), units.Duration(many.PerHandle()))
	if one := last(b.Find(GroupHandle, "", PartSetAccess)); one != nil {
		text += fmt.Sprintf("; to one handle of %s %s", units.Size(*one.Size), units.Duration(one.Median))
	}
	return text + "."
}

// readContention compares the fewest goroutines with the most.
func (b *Bench) readContention() string {
	rows := b.Find(GroupContention, "", PartAll)
	if len(rows) < 2 {
		return ""
	}
	first, most := rows[0], last(rows)
	return fmt.Sprintf("From %s the engine serves %s pairs a second in all, from %s %s.", goroutines(*first.Goroutines), perSecond(first),
		goroutines(*most.Goroutines), perSecond(most))
}

func goroutines(n int) string {
	if n == 1 {
		return "one goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// perSecond is how many a second there are, with three digits.
func perSecond(r *Row) string {
	n := 1e9 / r.Median
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-2))
	return units.Count(int64(math.Round(n/unit) * unit))
}

// readCopies compares page-locked with ordinary memory.
func (b *Bench) readCopies() string {
	text := ""
	for _, way := range []struct{ part, name string }{{PartToDevice, "to the device"}, {PartToHost, "to the host"}} {
		pinned, pageable := b.bothCopies(way.part)
		if pinned == nil {
			continue
		}
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf("Copies of %s %s run at %s with page-locked memory and at %s with ordinary memory (%s).",
			units.Size(*pinned.Size), way.name, Rate(pinned), Rate(pageable), compared(pageable, pinned))
	}
	return text
}

// bothCopies are the copies of the largest size that both kinds of memory have.
func (b *Bench) bothCopies(part string) (pinned, pageable *Row) {
	for _, r := range slices.Backward(b.Find(GroupCopy, CasePinned, part)) {
		if other := b.find(GroupCopy, CasePageable, part, *r.Size); other != nil {
			return r, other
		}
	}
	return nil, nil
}

// Rate writes how fast the bytes of a row moved.
func Rate(r *Row) string { return units.Size(uint64(r.BytesPerSecond())) + "/s" }

// readManaged compares managed memory with copies, at the largest size.
func (b *Bench) readManaged() string {
	explicit := last(b.Find(GroupManaged, CaseExplicit, PartAll))
	if explicit == nil {
		return ""
	}
	size := *explicit.Size
	demand := b.find(GroupManaged, CaseOnDemand, PartAll, size)
	prefetch := b.find(GroupManaged, CasePrefetch, PartAll, size)
	if demand == nil || prefetch == nil {
		return ""
	}
	return fmt.Sprintf("%s to the device, through a kernel and back take %s by copies of page-locked memory; managed memory takes %s on demand (%s) and %s with prefetching (%s).",
		units.Size(size), units.Duration(explicit.Median), units.Duration(demand.Median), compared(demand, explicit),
		units.Duration(prefetch.Median), compared(prefetch, explicit))
}

// readThreads compares one thread with many, for the driver and its pool.
func (b *Bench) readThreads() string {
	text := ""
	for _, c := range []struct{ kind, name string }{{CaseDriver, "cuMemAlloc and cuMemFree"}, {CasePool, "the driver's pool"}} {
		rows := b.Find(GroupThreads, c.kind, PartAll)
		if len(rows) < 2 {
			continue
		}
		if text != "" {
			text += " "
		}
		most := last(rows)
		text += fmt.Sprintf("From one thread %s serves %s pairs a second, from %d threads %s in all.", c.name, perSecond(rows[0]), *most.Goroutines, perSecond(most))
	}
	return text
}

// readAccess compares managed memory with memory of the device, in the order that
// is worst.
func (b *Bench) readAccess() string {
	plain, fault := last(b.Find(GroupAccess, CaseRandom, PartDevice)), last(b.Find(GroupAccess, CaseRandom, PartFault))
	if plain == nil || fault == nil {
		return ""
	}
	text := fmt.Sprintf("Random reads of managed memory that is on the host take %s, of device memory %s (%s)", units.Duration(fault.Median), units.Duration(plain.Median), compared(fault, plain))
	if r := last(b.Find(GroupAccess, CaseRandom, PartResident)); r != nil {
		text += fmt.Sprintf("; once it is on the device %s", units.Duration(r.Median))
	}
	if r := last(b.Find(GroupFault, "", PartFault)); r != nil {
		text += fmt.Sprintf("; a single fault takes %s with its launch", units.Duration(r.Median))
	}
	return text + "."
}

// readTier says what the host's memory costs that takes the place of the device's.
func (b *Bench) readTier() string {
	away, back := last(b.Find(GroupTier, CasePark, PartToHost)), last(b.Find(GroupTier, CasePark, PartToDevice))
	read, write := last(b.Find(GroupTier, CasePark, PartRead)), last(b.Find(GroupTier, CasePark, PartWrite))
	if away == nil || back == nil || read == nil || write == nil {
		return ""
	}
	text := fmt.Sprintf("Parked memory (docs/tiers.md) goes to the host at %s and comes back at %s; there kernels read it at %s and write it at %s",
		Rate(away), Rate(back), Rate(read), Rate(write))
	if pages := last(b.Find(GroupTier, CaseHostPages, PartCreate)); pages != nil {
		text += fmt.Sprintf("; making %s of the host's pages for it takes %s, once", units.Size(*pages.Size), units.Duration(pages.Median))
	}
	return text + "."
}

// compared says how much longer or shorter a took than b; where the middle
// halves of their rounds overlap they count as equal.
func compared(a, b *Row) string {
	switch {
	case a.Low <= b.High && b.Low <= a.High:
		return "no difference beyond the spread"
	case a.Median > b.Median:
		return ratio(a.Median/b.Median) + " times as long"
	}
	return ratio(b.Median/a.Median) + " times as fast"
}

func pairs(n float64) string {
	if ratio(n) == "1.00" {
		return "one pair"
	}
	return ratio(n) + " pairs"
}

// ratio writes a number with three digits or more.
func ratio(v float64) string {
	switch {
	case v >= 99.5:
		return units.Count(int64(math.Round(v)))
	case v >= 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func last(rows []*Row) *Row {
	if len(rows) == 0 {
		return nil
	}
	return rows[len(rows)-1]
}
