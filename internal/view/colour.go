package view

import (
	"hash/fnv"
	"math/bits"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// The parts of a rectangle's colour.
const (
	colourBits   = 24
	flagDimmed   = 1 << 31
	flagPending  = 1 << 30
	flagForever  = 1 << 29 // never freed
	lifeForever  = 63      // the colour of that lifetime
	colourByLife = "lifetime"
)

// colourings are what colours can stand for.
var colourings = []string{"stack", "size", "stream", "pool", "category", colourByLife}

// painter returns the function that gives things their colours: numbers of which
// the page makes colours.
func (r *pageRun) painter(of *stacked, by string) func(i int32) uint32 {
	switch by {
	case "size":
		return func(i int32) uint32 { return log2(of.Size[i]) }
	case "stream":
		return func(i int32) uint32 { return r.streams[of.stream(int(i))] }
	case "pool":
		return func(i int32) uint32 { return uint32(of.pool(int(i))) }
	case "category":
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

// stackColours are hashes of the frames of stacks, so that a stack has the same
// colour in all files.
func (r *pageRun) stackColours() []uint32 {
	frames := make([]uint32, r.trace.Stacks.NumFrames())
	for i := range frames {
		f := r.frame(trace.FrameID(i))
		h := fnv.New32a()
		h.Write([]byte(f.Filename + "\x00" + strconv.FormatInt(f.Line, 10) + "\x00" + f.Name)) // never fails
		frames[i] = h.Sum32()
	}
	out := make([]uint32, r.trace.Stacks.Len())
	for i := range out {
		h := uint32(2166136261)
		for _, f := range r.trace.Stacks.Frames(trace.StackID(i)) {
			h = (h ^ frames[f]) * 16777619
			h ^= h >> 15
		}
		out[i] = (h ^ h>>colourBits) & (1<<colourBits - 1)
	}
	return out
}
