package playground

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// mostNames of segments in one sentence.
const mostNames = 6

// given gathers the segments that went back to the driver one after the other.
type given struct {
	names []string
	count int
	bytes uint64
}

func (g *given) add(w *words, s alloc.Span) {
	g.count++
	g.bytes += s.Size
	if name, _, ok := w.game.runner.Place(s.Addr); ok && len(g.names) < mostNames {
		g.names = append(g.names, fmt.Sprintf("%s (%s)", name, units.Size(s.Size)))
	}
}

// pinned gathers the free blocks that stayed.
type pinned struct {
	count int
	bytes uint64
	parts int // of them those without a whole granule
}

func (p *pinned) add(d alloc.Pinned) {
	p.count++
	p.bytes += d.Block.Size
	if d.Granule > 0 {
		p.parts++
	}
}

// rest is what of a free block lies beside the granules that were unmapped.
func (p *pinned) rest(d alloc.Unmapping) {
	for _, size := range [...]uint64{d.Unmapped.Addr - d.Block.Addr, d.Block.End() - d.Unmapped.End()} {
		if size > 0 {
			p.add(alloc.Pinned{Block: alloc.Span{Size: size}, Granule: d.Granule})
		}
	}
}

// flush says what a release did, once it is over.
func (w *words) flush() {
	if g := w.given; g.count > 0 {
		names := strings.Join(g.names, ", ")
		if n := g.count - len(g.names); n > 0 {
			names += fmt.Sprintf(" and %s more", units.Count(int64(n)))
		}
		if g.count == 1 {
			w.say(sayReleased, "segment %s goes back to the driver (cudaFree).", names)
		} else {
			w.say(sayReleased, "segments %s go back to the driver (cudaFree), %s in all.", names, units.Size(g.bytes))
		}
		w.given = given{}
	}
	if p := w.stuck; p.count > 0 {
		if p.count == 1 {
			w.say(sayStranded, "a free block of %s stays: %s.", units.Size(p.bytes), p.why())
		} else {
			w.say(sayStranded, "%s, %s in all, stay: %s.", units.Plural(p.count, "free block"), units.Size(p.bytes), p.why())
		}
		w.stuck = pinned{}
	}
}

func (p pinned) why() string {
	switch p.parts {
	case 0:
		return "blocks in use are in the same segment"
	case p.count:
		return "no whole granule lies inside"
	default:
		return "blocks in use are in the same segment, or no whole granule lies inside"
	}
}

func (w *words) collection(d alloc.Collection) {
	reserved, threshold := pair(d.Reserved, d.Threshold)
	part := fmt.Sprintf("garbage_collection_threshold times the limit of %s", units.Size(d.Limit))
	switch {
	case d.Reserved <= d.Threshold:
		w.say(sayCollection, "%s are reserved, not more than %s, %s: nothing to do.", reserved, threshold, part)
	case d.Candidates == 0:
		w.say(sayCollection, "%s are reserved, more than %s, %s; but no segment of the large pool is free as a whole.", reserved, threshold, part)
	default:
		w.say(sayCollection, "%s are reserved, more than %s, %s: of %s those go that were not used for at least the average time.",
			reserved, threshold, part, units.Plural(d.Candidates, "free segment"))
	}
}

func (w *words) aging(d alloc.Aging) {
	name, _, _ := w.game.runner.Place(d.Segment.Addr)
	verdict := "it stays"
	if d.Released {
		verdict = "it goes"
	}
	searches := "1 search"
	if d.Age != 1 {
		searches = units.Count(int64(d.Age)) + " searches"
	}
	w.say(sayAge, "segment %s, %s, was not used for %s of its pool, the average is %.1f: %s.", name, units.Size(d.Segment.Size),
		searches, d.Average, verdict)
}

func (w *words) fullRelease(d alloc.FullRelease) {
	if d.Retry {
		w.say(sayRelease, "as a last resort all cached memory that can go is given back, and the driver is asked once more.")
		return
	}
	w.say(sayRelease, "empty_cache waits for all streams and gives back what is free as a whole: segments, and granules of expandable ones.")
}

func (w *words) unmapping(d alloc.Unmapping) {
	if d.Block == d.Unmapped {
		w.say(sayUnmapping, "the free %s %s are unmapped and go back to the driver.", units.Size(d.Unmapped.Size), w.where(d.Block.Addr))
		return
	}
	w.stuck.rest(d)
	inside := "1 of them lies inside: it is unmapped and goes back to the driver"
	if n := d.Unmapped.Size / d.Granule; n != 1 {
		inside = fmt.Sprintf("%s of them lie inside: they are unmapped, and %s go back to the driver", units.Count(int64(n)), units.Size(d.Unmapped.Size))
	}
	w.say(sayUnmapping, "of the free %s %s only whole granules of %s can go. %s.",
		units.Size(d.Block.Size), w.where(d.Block.Addr), units.Size(d.Granule), inside)
}

func (w *words) returned(d alloc.Return) {
	w.say(sayFree, "%s is free again in the %s of stream %d. The driver gets nothing back.", w.who(d.Block), poolName(d.Large), d.Stream)
	merged := d.Merged()
	var with []string
	if d.Left > 0 {
		with = append(with, fmt.Sprintf("the free %s before it", units.Size(d.Left)))
	}
	if d.Right > 0 {
		with = append(with, fmt.Sprintf("the free %s behind it", units.Size(d.Right)))
	}
	name, _, _ := w.game.runner.Place(d.Block.Addr)
	switch {
	case len(with) == 0 && d.Whole:
		w.say(sayMerge, "it is the whole of segment %s, there is nothing to merge with.", name)
	case len(with) == 0 && d.Apart:
		w.say(sayMerge, "none: no memory beside it is mapped, so it is no hole: empty_cache unmaps the whole granules in it.")
	case len(with) == 0 && d.Grows:
		w.say(sayMerge, "none: no neighbour is free. The %s are the end of what is mapped, so the segment can grow behind them.", units.Size(d.Block.Size))
	case len(with) == 0:
		w.say(sayMerge, "none: no neighbour is free, so a hole of %s is left.", units.Size(d.Block.Size))
	case d.Whole:
		w.say(sayMerge, "with %s: segment %s is one free block of %s again.", strings.Join(with, " and "), name, units.Size(merged.Size))
	case d.Apart:
		w.say(sayMerge, "with %s: one free block of %s, and no memory beside it is mapped.", strings.Join(with, " and "), units.Size(merged.Size))
	default:
		w.say(sayMerge, "with %s: one free block of %s.", strings.Join(with, " and "), units.Size(merged.Size))
	}
}

func (w *words) streamUse(d alloc.StreamUse) {
	if d.Own {
		w.say(sayStreamUse, "%s was allocated on stream %d: nothing to note.", w.who(d.Block), d.Stream)
		return
	}
	w.say(sayStreamUse, "it is noted that %s is used on stream %d too. That matters when it is freed.", w.who(d.Block), d.Stream)
}
