package view

import (
	"cmp"
	"hash/fnv"
	"math/bits"
	"slices"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/present/palette"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// The parts of a rectangle's colour.
const (
	colourBits  = 24
	flagDimmed  = 1 << 31
	flagPending = 1 << 30
	flagForever = 1 << 29 // never freed
	lifeForever = 63      // the colour of that lifetime

	// What does not get a colour of its own, and what is not known, is grey.
	colourOthers  = palette.Most
	colourUnknown = palette.Most + 1
)

// The colourings that need more than the thing itself.
const (
	colourByStack    = "stack"
	colourByCategory = "category"
	colourByLife     = "lifetime"
	colourByAge      = "age"
)

// colourings are what colours can stand for; momentColourings are those of the
// map of a moment.
var (
	colourings       = []string{colourByStack, "size", "stream", "pool", colourByCategory, colourByLife}
	momentColourings = []string{colourByCategory, colourByStack, "size", "stream", "pool", colourByAge}
)

// painter returns the function that gives things their colours: numbers of which
// the page makes colours.
func (r *pageRun) painter(of *stacked, by string) func(i int32) uint32 {
	switch by {
	case "size":
		return func(i int32) uint32 { return log2(of.Size[i]) }
	case "stream":
		return func(i int32) uint32 { return min(r.streams[of.stream(int(i))], colourOthers) }
	case "pool":
		return func(i int32) uint32 {
			if p := of.pool(int(i)); p < len(r.lives.Pools) {
				return min(uint32(p), colourOthers)
			}
			return colourUnknown
		}
	case colourByCategory:
		return func(i int32) uint32 { return of.category(int(i)) }
	case colourByLife:
		return func(i int32) uint32 {
			if of.Freed[i] == timeline.Never {
				return lifeForever
			}
			return log2(uint64(min(int(of.Gone[i]), r.events())-int(of.Born[i])) + 1)
		}
	}
	colours := r.colours()
	return func(i int32) uint32 { return colours[of.stack(int(i))] }
}

func log2(n uint64) uint32 { return uint32(max(bits.Len64(n), 1) - 1) }

// painterAt is the painter of the blocks at a moment, when they have an age.
func (r *pageRun) painterAt(event int, by string) func(i int32) uint32 {
	if by != colourByAge {
		return r.painter(r.blocks(), by)
	}
	return func(i int32) uint32 {
		if r.lives.Born[i] < 0 {
			return lifeForever
		}
		return log2(uint64(max(event-int(r.lives.Born[i]), 0)) + 1)
	}
}

// stackColours gives the stacks that hold most a colour each; all others share
// one. Where it can be, a stack has the same colour in all files.
func (r *pageRun) stackColours() []uint32 {
	out := make([]uint32, r.trace.Stacks.Len())
	for i := range out {
		out[i] = colourOthers
	}
	held := r.heldByStack()
	order := make([]int, 0, len(held))
	for i := range held {
		if held[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(held[b], held[a]) })
	taken := [palette.Most]bool{}
	for _, i := range order[:min(len(order), palette.Most)] {
		colour := r.stackHash(trace.StackID(i)) % palette.Most
		for taken[colour] {
			colour = (colour + 1) % palette.Most
		}
		taken[colour], out[i] = true, colour
	}
	return out
}

// heldByStack is how much of the picture each stack takes: its share of all bytes
// over all events, and of those at the moment that the page begins with.
func (r *pageRun) heldByStack() []float64 {
	held := make([]float64, r.trace.Stacks.Len())
	area, total := 0.0, 0.0
	for i := range r.lives.Len() {
		area += r.lifeArea(i)
	}
	now := r.lives.Alive(nil, r.firstMoment())
	for _, i := range now {
		total += float64(r.lives.Size[i])
	}
	for i := range r.lives.Len() {
		held[r.lives.Stack(i)] += r.lifeArea(i) / max(area, 1)
	}
	for _, i := range now {
		held[r.lives.Stack(int(i))] += float64(r.lives.Size[i]) / max(total, 1)
	}
	return held
}

// lifeArea is a life in bytes times events.
func (r *pageRun) lifeArea(i int) float64 {
	events := min(int(r.lives.Gone[i]), r.events()) - max(int(r.lives.Born[i]), 0)
	return float64(r.lives.Size[i]) * float64(max(events, 1))
}

// firstMoment is the event that the page begins with: the last failure, else the
// peak.
func (r *pageRun) firstMoment() int {
	if n := len(r.peaks.OOMs); n > 0 {
		return r.peaks.OOMs[n-1].Index
	}
	return r.allocatedPeak().Event
}

// defaultColouring is by category if that is known of most bytes.
func (r *pageRun) defaultColouring() string {
	blocks := r.blocks()
	known, all := 0.0, 0.0
	for i := range r.lives.Len() {
		area := r.lifeArea(i)
		all += area
		if findings.Categories()[blocks.category(i)] != findings.Unknown {
			known += area
		}
	}
	if 2*known > all {
		return colourByCategory
	}
	return colourByStack
}

// stackHash is a hash of the frames of a stack.
func (r *pageRun) stackHash(id trace.StackID) uint32 {
	h := fnv.New32a()
	for _, id := range r.trace.Stacks.Frames(id) {
		f := r.frame(id)
		h.Write([]byte(f.Filename + "\x00" + strconv.FormatInt(f.Line, 10) + "\x00" + f.Name + "\x00")) // never fails
	}
	return h.Sum32()
}
