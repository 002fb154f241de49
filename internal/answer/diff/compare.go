package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// Diff is what changed from side A to side B.
type Diff struct {
	A *Side `json:"a"`
	B *Side `json:"b"`

	// Sizes says what the bytes of stacks are: block, requested, or mixed, if
	// one side has only the one and the other only the other.
	Sizes string `json:"sizes"`
	// The sums over all stacks.
	ABytes uint64 `json:"a_bytes"`
	BBytes uint64 `json:"b_bytes"`
	Delta  int64  `json:"delta_bytes"`

	Grown  Changes `json:"grown"`
	Shrunk Changes `json:"shrunk"`
	New    Changes `json:"new"`
	Gone   Changes `json:"gone"`
	Same   Changes `json:"same"`

	Matched Matched  `json:"matched"`
	Stacks  []Stack  `json:"stacks"` // the largest difference first
	Notes   []string `json:"notes"`
}

// Changes sums the stacks of one kind of change up.
type Changes struct {
	Stacks int   `json:"stacks"`
	Delta  int64 `json:"delta_bytes"`
}

// Matched counts the stacks that both sides have by how they were matched.
type Matched struct {
	Exact     int `json:"exact"`
	Lines     int `json:"lines"`
	Functions int `json:"functions"`
	Site      int `json:"site"`
}

// The kinds of change.
const (
	Grown  = "grown"
	Shrunk = "shrunk"
	New    = "new"
	Gone   = "gone"
	Same   = "same"
)

// Stack is a call stack and its active memory on both sides.
type Stack struct {
	Change  string  `json:"change"`
	Delta   int64   `json:"delta_bytes"`
	ABytes  uint64  `json:"a_bytes"`
	BBytes  uint64  `json:"b_bytes"`
	ABlocks int     `json:"a_blocks"`
	BBlocks int     `json:"b_blocks"`
	Matched *string `json:"matched"` // nil if only one side has it
	// Frames are those of B, or of A if B does not have the stack. AFrames are
	// those of A if they are others.
	Frames  []timeline.Frame `json:"frames"`
	AFrames []timeline.Frame `json:"a_frames"`
	Site    timeline.Site    `json:"-"` // if there are Frames

	stack trace.StackID
}

// The kinds of sizes.
const (
	BlockSizes     = "block"
	RequestedSizes = "requested"
	MixedSizes     = "mixed"
)

// Compare puts two sides of the table next to each other.
func (x *Table) Compare(a, b *Side) *Diff {
	d := &Diff{A: a, B: b, Stacks: []Stack{}, Notes: []string{}}
	size := d.sizes()
	matches, note := x.matchStacks(a, b)
	for _, m := range matches {
		d.add(x.stack(m, size))
	}
	if note != "" {
		d.Notes = append(d.Notes, note)
	}
	d.Delta = int64(d.BBytes - d.ABytes)
	slices.SortStableFunc(d.Stacks, func(a, b Stack) int {
		return cmp.Or(
			cmp.Compare(magnitude(b.Delta), magnitude(a.Delta)), cmp.Compare(b.Delta, a.Delta),
			cmp.Compare(kept(a), kept(b)), cmp.Compare(b.BBytes, a.BBytes), cmp.Compare(a.stack, b.stack))
	})
	x.tellApart(d.Stacks)
	d.notes()
	return d
}

// sizes chooses what is compared: block sizes if both sides know them.
func (d *Diff) sizes() func(h *timeline.LiveHolder, ofA bool) uint64 {
	block := func(s *Side) bool { return s.Active != nil }
	d.Sizes = MixedSizes
	switch {
	case block(d.A) && block(d.B):
		d.Sizes = BlockSizes
	case d.A.Requested != nil && d.B.Requested != nil:
		d.Sizes = RequestedSizes
	}
	return func(h *timeline.LiveHolder, ofA bool) uint64 {
		side := d.B
		if ofA {
			side = d.A
		}
		if d.Sizes == BlockSizes || d.Sizes == MixedSizes && block(side) {
			return h.Size
		}
		return h.Requested
	}
}

func (x *Table) stack(m match, size func(h *timeline.LiveHolder, ofA bool) uint64) Stack {
	var s Stack
	if m.a != nil {
		s.ABytes, s.ABlocks, s.stack = size(m.a, true), m.a.Blocks, m.a.Stack
	}
	if m.b != nil {
		s.BBytes, s.BBlocks, s.stack = size(m.b, false), m.b.Blocks, m.b.Stack
	}
	s.Delta = int64(s.BBytes - s.ABytes)
	s.Frames = x.frames(s.stack)
	s.Site, _ = timeline.SiteOf(x.trace, s.stack)
	switch {
	case m.a == nil:
		s.Change = New
	case m.b == nil:
		s.Change = Gone
	case s.Delta > 0:
		s.Change = Grown
	case s.Delta < 0:
		s.Change = Shrunk
	default:
		s.Change = Same
	}
	if m.how != "" {
		s.Matched = &m.how
		if m.a.Stack != m.b.Stack {
			s.AFrames = x.frames(m.a.Stack)
		}
	}
	return s
}

func (d *Diff) add(s Stack) {
	d.Stacks = append(d.Stacks, s)
	d.ABytes += s.ABytes
	d.BBytes += s.BBytes
	sum := map[string]*Changes{Grown: &d.Grown, Shrunk: &d.Shrunk, New: &d.New, Gone: &d.Gone, Same: &d.Same}[s.Change]
	sum.Stacks++
	sum.Delta += s.Delta
	if s.Matched == nil {
		return
	}
	switch *s.Matched {
	case MatchExact:
		d.Matched.Exact++
	case MatchLines:
		d.Matched.Lines++
	case MatchFunctions:
		d.Matched.Functions++
	case MatchSite:
		d.Matched.Site++
	}
}

// maxAlike bounds how many sites that look the same are told apart: each is
// compared with each. The largest differences come first.
const maxAlike = 500

// tellApart has sites that look the same show where their stacks differ.
func (x *Table) tellApart(all []Stack) {
	type looks struct{ inner, user timeline.Frame }
	groups := map[looks][]int{}
	for i := range all {
		k := looks{all[i].Site.Inner, all[i].Site.User}
		if len(groups[k]) < maxAlike {
			groups[k] = append(groups[k], i)
		}
	}
	for _, group := range groups {
		stacks, sites := make([]trace.StackID, len(group)), make([]timeline.Site, len(group))
		for j, i := range group {
			stacks[j], sites[j] = all[i].stack, all[i].Site
		}
		timeline.TellApart(x.trace, stacks, sites)
		for j, i := range group {
			all[i].Site = sites[j]
		}
	}
}

func (d *Diff) notes() {
	for _, side := range []struct {
		name string
		*Side
	}{{"A", d.A}, {"B", d.B}} {
		for _, n := range side.notes {
			if side.name == "B" && d.OneFile() && slices.Contains(d.A.notes, n) {
				continue // said for the file already
			}
			d.Notes = append(d.Notes, side.name+": "+n)
		}
		if total := side.total(d.Sizes); total != d.bytes(side.name) {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: the file contradicts itself: %s is active by its events, %s by its blocks",
				side.name, units.Size(total), units.Size(d.bytes(side.name))))
		}
	}
	switch d.Sizes {
	case RequestedSizes:
		d.Notes = append(d.Notes, "sizes are requested sizes: the replay did not give block sizes on both sides")
	case MixedSizes:
		d.Notes = append(d.Notes, "one side has only block sizes, the other only requested sizes: differences include rounding")
	}
	if !d.OneFile() && d.A.onlyUnknown() != d.B.onlyUnknown() {
		d.Notes = append(d.Notes, "one side has no call stacks: nothing can be matched")
	}
}

func (d *Diff) bytes(side string) uint64 {
	if side == "A" {
		return d.ABytes
	}
	return d.BBytes
}

// total returns what the events say is active.
func (s *Side) total(sizes string) uint64 {
	if sizes != RequestedSizes && s.Active != nil {
		return *s.Active
	}
	if s.Requested == nil {
		return 0
	}
	return *s.Requested
}

// onlyUnknown reports whether nothing has a stack, though there are blocks.
func (s *Side) onlyUnknown() bool {
	return len(s.holders) == 1 && s.holders[0].Stack == trace.NoStack
}

// kept is 1 for a stack that did not change, which comes last.
func kept(s Stack) int {
	if s.Change == Same {
		return 1
	}
	return 0
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// OneFile reports whether both sides are moments of one trace.
func (d *Diff) OneFile() bool { return d.A.source == d.B.source }

// Changed returns the number of stacks that are not the same, which are the
// first of Stacks.
func (d *Diff) Changed() int { return len(d.Stacks) - d.Same.Stacks }
