package whatif

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// Bucket pads the sizes of requests. The zero value leaves them as they are.
type Bucket struct {
	Text string // a factor, pow2 or a list of sizes

	factor float64  // between one bucket and the next; 0 for a list
	sizes  []uint64 // of a list, ascending
}

// ParseBucket reads a factor above 1 (1.25), pow2, or sizes with commas between
// (16MiB,64MiB).
func ParseBucket(text string) (Bucket, error) {
	if text == "pow2" {
		return Bucket{Text: text, factor: 2}, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		if !(f >= 1.01 && f <= 16) {
			return Bucket{}, fmt.Errorf("%q: a factor must be from 1.01 to 16; a list of sizes has units (16MiB,64MiB)", text)
		}
		return Bucket{Text: text, factor: f}, nil
	}
	b := Bucket{Text: text}
	for part := range strings.SplitSeq(text, ",") {
		n, err := units.Parse(part)
		if err != nil || n == 0 {
			return Bucket{}, fmt.Errorf("%q: write a factor such as 1.25, pow2, or sizes with commas between such as 16MiB,64MiB", text)
		}
		b.sizes = append(b.sizes, n)
	}
	slices.Sort(b.sizes)
	return b, nil
}

// pad returns the bucket of a size. What is above the last of a list stays as
// it is.
func (b *Bucket) pad(size uint64) uint64 {
	if b.factor == 0 {
		if i, _ := slices.BinarySearch(b.sizes, size); i < len(b.sizes) {
			return b.sizes[i]
		}
		return size
	}
	if size <= alloc.MinBlock {
		return size
	}
	nth := func(n float64) uint64 { return uint64(math.Ceil(alloc.MinBlock * math.Pow(b.factor, n))) }
	n := math.Ceil(math.Log(float64(size)/alloc.MinBlock) / math.Log(b.factor))
	if below := nth(n - 1); below >= size { // it was rounded up
		return below
	}
	return nth(n)
}

// apply returns the program with the requests of the call sites that vary padded.
func (b *Bucket) apply(p *replay.Program, steps []findings.Step) (*replay.Program, string, error) {
	sites := varyingSites(p, steps)
	if sites == nil {
		return nil, "", errors.New("--bucket: the file has no call stacks, so it does not show which sizes vary; record with stacks")
	}
	var requests, padded, asked, before uint64
	out := p.Resized(func(c replay.Call) uint64 {
		size := c.Size
		if sites[stackOf(p, c)] {
			size = b.pad(size)
		}
		requests++
		before += c.Size
		asked += size
		if size != c.Size {
			padded++
		}
		return size
	})
	varying := 0
	for _, v := range sites {
		if v {
			varying++
		}
	}
	return out, fmt.Sprintf("%s of %s call sites ask for sizes that vary; %s of %s requests are padded, which adds %.1f %% to the bytes asked for in all",
		units.Count(int64(varying)), units.Count(int64(len(sites))), units.Count(int64(padded)), units.Count(int64(requests)), 100*(float64(asked)/float64(max(before, 1))-1)), nil
}

func stackOf(p *replay.Program, c replay.Call) trace.StackID {
	if c.Event < 0 || c.Event >= p.Trace.Events.Len() {
		return trace.NoStack
	}
	return p.Trace.Events.Stack.At(c.Event)
}

// siteSizes are the sizes that one call site asks for.
type siteSizes struct {
	seen  seen
	sizes map[uint64]*seen
}

// seen counts the steps in which something occurs.
type seen struct{ steps, last int }

func (s *seen) in(step int) {
	if s.steps == 0 || s.last != step {
		s.steps, s.last = s.steps+1, step
	}
}

// comparable returns the steps that should be alike: complete ones, without the
// first, in which state is made, if there are others to compare.
func comparable(steps []findings.Step) []findings.Step {
	out := slices.DeleteFunc(slices.Clone(steps), func(s findings.Step) bool { return !s.Complete })
	if len(out) > 2 {
		out = out[1:]
	}
	return out
}

// varyingSites says of each call site whether its sizes vary: from one step to
// another, or at all in a run without steps. It returns nil if the file has no
// stacks.
func varyingSites(p *replay.Program, steps []findings.Step) map[trace.StackID]bool {
	alike := comparable(steps)
	sites := map[trace.StackID]*siteSizes{}
	step := 0 // the first that does not end before the call
	for i := range p.Len() {
		c := p.Call(i)
		for step < len(alike) && c.Event >= alike[step].End {
			step++
		}
		stack := stackOf(p, c)
		if c.Kind != replay.CallAlloc || stack == trace.NoStack {
			continue
		}
		s := sites[stack]
		if s == nil {
			s = &siteSizes{sizes: map[uint64]*seen{}}
			sites[stack] = s
		}
		if len(alike) > 0 && (step == len(alike) || c.Event < alike[step].Begin) {
			continue // outside the steps that are compared
		}
		s.seen.in(step)
		if s.sizes[c.Size] == nil {
			s.sizes[c.Size] = &seen{}
		}
		s.sizes[c.Size].in(step)
	}
	if len(sites) == 0 {
		return nil
	}
	varies := make(map[trace.StackID]bool, len(sites))
	for stack, s := range sites {
		varies[stack] = len(alike) == 0 && len(s.sizes) > 1
		for _, n := range s.sizes {
			varies[stack] = varies[stack] || n.steps < s.seen.steps
		}
	}
	return varies
}
