package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
)

// tie shows that two engines that follow the same rules had to choose
// differently: the blocks to choose from were the same and equally large, and
// the rule then takes the lowest address (spec 2.1), which is another block's
// on another device. It is not assumed: every part of it is read off the two
// engines, and what cannot be shown is a difference.
type tie struct {
	Operation int    `json:"operation"`
	Text      string `json:"operation_text"`
	Choice    string `json:"choice"` // what was chosen
	SizeBytes uint64 `json:"size_bytes"`
	Large     bool   `json:"large"`
	Stream    int    `json:"stream"` // position in the recording

	// Settled says that the choice was between whole segments. They are alike
	// while they are free, so it makes no difference which of them is which:
	// the matching exchanges them and goes on.
	Settled bool `json:"settled"`

	// Candidates are all blocks of that size that were free in that pool, by
	// recorded address.
	Candidates []candidate `json:"candidates"`
}

// candidate is one block in both runs.
type candidate struct {
	RecordedAddr uint64 `json:"recorded_addr"`
	DeviceAddr   uint64 `json:"device_addr"`
	Recorded     bool   `json:"chosen_in_recording"`
	Device       bool   `json:"chosen_on_device"`
}

// The choices that addresses can decide.
const (
	choiceBlock   = "free block to allocate from"
	choiceRelease = "free segment to give back"
)

// shelf is where free blocks are looked for: one pool, one of its halves, one
// stream.
type shelf struct {
	stream uint64 // recorded handle
	large  bool
	pool   alloc.PoolID
}

// settle looks whether a difference is a tie. If it is one between whole free
// segments it exchanges them and returns nil: nothing differs any more.
func (l *lockstep) settle(d *difference) *difference {
	d.Tie, d.NotTie = l.tie(d)
	if d.Tie == nil {
		return d
	}
	l.ties = append(l.ties, d.Tie)
	var ref, dev []candidate // taken in one run only
	for _, c := range d.Tie.Candidates {
		switch {
		case c.Recorded:
			ref = append(ref, c)
		case c.Device:
			dev = append(dev, c)
		}
		if (c.Recorded || c.Device) && !l.match.whole(c.RecordedAddr, d.Tie.SizeBytes) {
			return d
		}
	}
	for i := range ref {
		l.match.exchange(ref[i].RecordedAddr, dev[i].RecordedAddr)
	}
	d.Tie.Settled = true
	return nil
}

// tie shows that a difference is a tie, or says why it is none. It is called
// right after the operation, when both engines are as it left them.
func (l *lockstep) tie(d *difference) (*tie, string) {
	if len(d.ref) == 0 || len(d.dev) == 0 {
		return nil, "the two runs did not do the same kind of thing"
	}
	if d.ref[0].Action == alloc.ActionAlloc.String() {
		return l.blockTie(d)
	}
	if d.ref[0].gives() {
		return l.releaseTie(d)
	}
	return nil, "addresses do not decide where this happens"
}

// blockTie looks at an allocation that was served from another block.
func (l *lockstep) blockTie(d *difference) (*tie, string) {
	ref, ok := chosen(l.ref.log.decisions)
	if !ok {
		return nil, "the recorded run used new memory"
	}
	dev, ok := chosen(l.dev.log.decisions)
	if !ok {
		return nil, "the run on the device used new memory"
	}
	if ref.Block.Size != dev.Block.Size {
		return nil, fmt.Sprintf("the blocks are not equally large: %d and %d bytes", ref.Block.Size, dev.Block.Size)
	}
	if ref.GrowableSize != dev.GrowableSize {
		return nil, fmt.Sprintf("the blocks, of expandable segments, have not equally much room to grow: %d and %d bytes", ref.GrowableSize, dev.GrowableSize)
	}
	if ref.Block.Addr != d.ref[0].Addr || dev.Block.Addr != d.dev[0].Addr {
		return nil, "the blocks chosen are not those that were handed out"
	}
	return l.decide(d, choiceBlock, []alloc.Span{ref.Block}, []alloc.Span{dev.Block}, lowest)
}

// chosen is the last block that a search found.
func chosen(decisions []alloc.Decision) (alloc.BestFit, bool) {
	for _, d := range slices.Backward(decisions) {
		if b, ok := d.(alloc.BestFit); ok {
			return b, true
		}
	}
	return alloc.BestFit{}, false
}

// releaseTie looks at segments given back to make room for one request, which
// are chosen one by one (spec 7.1): the smallest that is large enough, the
// lowest of several; or else the largest, from the highest address down.
func (l *lockstep) releaseTie(d *difference) (*tie, string) {
	if !targeted(l.ref.log.decisions) || !targeted(l.dev.log.decisions) {
		return nil, "all free segments are given back here: there is nothing to choose"
	}
	if len(d.ref) != len(d.dev) {
		return nil, fmt.Sprintf("%d segments were given back in the recording, %d on the device", len(d.ref), len(d.dev))
	}
	for i := range d.ref {
		if !l.alike(d.ref[i], d.dev[i]) {
			return nil, fmt.Sprintf("the segments are not alike: %s, %s", d.ref[i], d.dev[i])
		}
	}
	// Segments that went in both runs were no matter of choice; those that are
	// left over must be equally large.
	var ref, dev []alloc.Span
	gone := map[uint64]bool{}
	for _, e := range d.dev {
		gone[e.Addr] = true
	}
	for _, e := range d.ref {
		if at, ok := l.match.toDev(e.Addr); ok && gone[at] {
			delete(gone, at)
		} else {
			ref = append(ref, alloc.Span{Addr: e.Addr, Size: e.Size})
		}
	}
	for _, e := range d.dev {
		if gone[e.Addr] {
			dev = append(dev, alloc.Span{Addr: e.Addr, Size: e.Size})
		}
	}
	for _, s := range slices.Concat(ref, dev) {
		if s.Size != ref[0].Size {
			return nil, "the segments given back in one run only are not equally large"
		}
	}
	end := highest
	if want := wanted(l.ref.log.decisions); ref[0].Size >= want {
		end = lowest
	}
	return l.decide(d, choiceRelease, ref, dev, end)
}

func targeted(decisions []alloc.Decision) bool { return wanted(decisions) != 0 }

// wanted is what a targeted release had to find; 0 if there was none.
func wanted(decisions []alloc.Decision) uint64 {
	for _, d := range decisions {
		if t, ok := d.(alloc.TargetedRelease); ok {
			return t.Want
		}
	}
	return 0
}

// end is the end of the address order that a rule takes from.
type end bool

const (
	lowest  end = false
	highest end = true
)

// decide lists all blocks of the size in question that were free in that place
// and checks that each run took from the same end of its own address order.
func (l *lockstep) decide(d *difference, choice string, ref, dev []alloc.Span, from end) (*tie, string) {
	size := ref[0].Size
	at := shelf{stream: d.ref[0].Stream, pool: d.ref[0].Pool}
	var ok bool
	if at.large, ok = l.half(); !ok && choice == choiceBlock {
		return nil, "the request's pool is not known"
	}
	t := &tie{Operation: d.Operation, Text: d.Text, Choice: choice, SizeBytes: size, Large: at.large}
	t.Stream = slices.Index(l.rec.Streams, at.stream)

	free := map[uint64]*candidate{} // by recorded address
	for _, s := range ref {
		dev, ok := l.match.toDev(s.Addr)
		if !ok {
			return nil, fmt.Sprintf("the block at %#x of the recording is in no segment of the device", s.Addr)
		}
		free[s.Addr] = &candidate{RecordedAddr: s.Addr, DeviceAddr: dev, Recorded: true}
	}
	for _, a := range freeBlocks(l.ref.allocator, at, size) {
		if at, ok := l.match.toDev(a); ok && free[a] == nil {
			free[a] = &candidate{RecordedAddr: a, DeviceAddr: at}
		}
	}
	// What is free in the recorded run after its choice must be free on the
	// device before its own, and the other way round.
	there := map[uint64]bool{}
	devShelf := at
	devShelf.stream = l.streams[at.stream]
	for _, a := range freeBlocks(l.dev.allocator, devShelf, size) {
		if _, ok := l.match.toRef(a); ok { // else it was got in this operation
			there[a] = true
		}
	}
	for _, s := range dev {
		there[s.Addr] = true
		a, ok := l.match.toRef(s.Addr)
		if c := free[a]; ok && c != nil && !c.Recorded {
			c.Device = true
			continue
		}
		return nil, fmt.Sprintf("the block that the device chose, at %#x, was not free in the recorded run", s.Addr)
	}
	for _, c := range free {
		if !there[c.DeviceAddr] {
			return nil, fmt.Sprintf("the block at %#x of the recording, on the device at %#x, was not free there", c.RecordedAddr, c.DeviceAddr)
		}
		t.Candidates = append(t.Candidates, *c)
	}
	if len(there) != len(free) {
		return nil, fmt.Sprintf("%d such blocks were free in the recorded run, %d on the device", len(free), len(there))
	}
	slices.SortFunc(t.Candidates, func(x, y candidate) int { return cmp.Compare(x.RecordedAddr, y.RecordedAddr) })
	for _, run := range []struct {
		name  string
		addr  func(candidate) uint64
		taken func(candidate) bool
	}{
		{"the recorded run", func(c candidate) uint64 { return c.RecordedAddr }, func(c candidate) bool { return c.Recorded }},
		{"the run on the device", func(c candidate) uint64 { return c.DeviceAddr }, func(c candidate) bool { return c.Device }},
	} {
		if !fromEnd(t.Candidates, from, run.addr, run.taken) {
			return nil, fmt.Sprintf("%s did not take the block that the order of addresses names", run.name)
		}
	}
	return t, ""
}

// half says whether the operation's allocation is one of the large pool.
func (l *lockstep) half() (large, ok bool) {
	for _, d := range l.ref.log.decisions {
		if c, ok := d.(alloc.PoolChoice); ok {
			return c.Large, true
		}
	}
	return true, false
}

// freeBlocks lists the addresses of the free blocks of one size in one place.
func freeBlocks(a *alloc.Allocator, at shelf, size uint64) []uint64 {
	var out []uint64
	for _, s := range a.Segments() {
		if s.Stream != at.stream || s.Large != at.large || s.Pool != at.pool {
			continue
		}
		for _, b := range s.Blocks {
			if b.State == alloc.Inactive && b.Size == size {
				out = append(out, b.Address)
			}
		}
	}
	return out
}

// fromEnd reports whether the taken candidates are those at one end of the
// order of addresses.
func fromEnd(list []candidate, from end, addr func(candidate) uint64, taken func(candidate) bool) bool {
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y candidate) int {
		if from == highest {
			x, y = y, x
		}
		return cmp.Compare(addr(x), addr(y))
	})
	n := 0
	for n < len(list) && taken(list[n]) {
		n++
	}
	return n > 0 && !slices.ContainsFunc(list[n:], taken)
}
