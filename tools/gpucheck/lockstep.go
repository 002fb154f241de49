package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// entry is one thing that an engine did: an event of its trace, or a range of
// addresses that it reserved or gave back, which leaves no event.
type entry struct {
	Action string
	Addr   uint64
	Size   uint64
	Stream uint64
	Pool   alloc.PoolID
}

const (
	actionReserve   = "reserve"
	actionUnreserve = "unreserve"
)

func (e entry) String() string {
	return fmt.Sprintf("%s of %d bytes at %#x, stream %#x", e.Action, e.Size, e.Addr, e.Stream)
}

// gives reports whether the entry gives memory or addresses back to the device.
func (e entry) gives() bool {
	switch e.Action {
	case actionUnreserve, alloc.ActionSegmentFree.String(), alloc.ActionSegmentUnmap.String():
		return true
	}
	return false
}

// opLog is what one engine did in one operation.
type opLog struct {
	entries   []entry
	decisions []alloc.Decision
	addr      uint64 // of an allocation
	err       error
}

func (l *opLog) add(e entry) { l.entries = append(l.entries, e) }

func (l *opLog) reset() {
	l.entries, l.decisions, l.err = l.entries[:0], l.decisions[:0], nil
}

// options let an allocator write the log; then is called after every event.
func (l *opLog) options(then func()) []alloc.Option {
	return []alloc.Option{
		alloc.WithObserver(func(e alloc.Event) {
			l.add(entry{e.Action.String(), e.Addr, e.Size, e.Stream, e.Pool})
			then()
		}),
		alloc.WithExplainer(func(d alloc.Decision) { l.decisions = append(l.decisions, d) }),
	}
}

// side is one of the two engines.
type side struct {
	allocator *alloc.Allocator
	performer *oracle.Performer
	log       opLog
}

// lockstep performs a recording on two engines at once, operation by
// operation: the reference, whose device gives the recorded addresses and
// which therefore does exactly what PyTorch did, and the one under test, whose
// device is real. Whatever the second does differently is seen at the step
// where it happens, with both states at hand.
type lockstep struct {
	rec   *oracle.Recording
	guide *guide
	match *pairing
	recDr *recorded.Driver
	ref   side
	dev   side

	streams   map[uint64]uint64 // recorded handle -> real one
	reordered int               // releases that came in another order, by address alone
	ties      []*tie            // shown, in order; all but a last one were settled
}

// newLockstep sets both engines up. Streams stand for the recorded ones by
// position; waited is the reading of the recording.
func newLockstep(rec *oracle.Recording, waited []int, dev driver.Copier, streams []uint64, opts ...alloc.Option) (*lockstep, error) {
	l := &lockstep{rec: rec, match: &pairing{}, streams: map[uint64]uint64{}}
	l.guide = newGuide(l.match)
	for i, s := range rec.Streams {
		l.streams[s] = streams[i]
	}
	l.recDr = recorded.New(recorded.Config{TotalMemory: rec.TotalMemory, Events: recorded.List(rec.Trace), Waited: waited})
	ref := &reference{Driver: l.recDr, guide: l.guide, log: &l.ref.log, event: map[driver.Event]int{}}
	real := &guided{Copier: dev, total: rec.TotalMemory, guide: l.guide, log: &l.dev.log, event: map[driver.Event]int{}}
	if err := l.ref.open(rec, ref, rec.Streams, l.ref.log.options(l.recDr.Advance)); err != nil {
		return nil, err
	}
	return l, l.dev.open(rec, real, streams, append(l.dev.log.options(func() {}), opts...))
}

func (s *side) open(rec *oracle.Recording, d driver.Driver, streams []uint64, opts []alloc.Option) error {
	var err error
	if s.allocator, err = rec.Allocator(d, opts...); err != nil {
		return err
	}
	s.performer, err = oracle.NewPerformer(rec, s.allocator, streams)
	return err
}

// do performs operation i on both.
func (l *lockstep) do(i int) {
	l.guide.reset()
	l.ref.log.reset()
	l.dev.log.reset()
	l.recDr.BeginOp(i)
	_, l.ref.log.err = l.ref.performer.Do(i)
	for n, e := range l.ref.log.entries {
		if e.Action == alloc.ActionFreeCompleted.String() {
			l.guide.rank[e.Addr] = n
		}
	}
	l.dev.log.addr, l.dev.log.err = l.dev.performer.Do(i)
	for _, e := range l.dev.log.entries {
		if e.Action == alloc.ActionFreeCompleted.String() {
			delete(l.guide.ours, e.Addr)
		}
	}
}

// difference is the first thing that came out differently.
type difference struct {
	Operation int    `json:"operation"`
	Text      string `json:"operation_text"`
	What      string `json:"what"`
	Recorded  string `json:"recorded,omitempty"`
	Device    string `json:"device,omitempty"`
	Tie       *tie   `json:"tie,omitempty"`       // it is one
	NotTie    string `json:"not_a_tie,omitempty"` // why it is none

	ref, dev []entry // that differ: one each, or a run of releases
}

// release reports whether the difference is about memory given back.
func (d *difference) release() bool {
	return slices.ContainsFunc(slices.Concat(d.ref, d.dev), entry.gives)
}

func (l *lockstep) differ(i int, what, ref, dev string) *difference {
	d := &difference{Operation: i, What: what, Recorded: ref, Device: dev}
	if i < len(l.rec.Ops) {
		d.Text = l.rec.Ops[i].String()
	}
	return d
}

// compare looks for a difference in what operation i did, and matches the
// segments it got.
func (l *lockstep) compare(i int) *difference {
	if err := l.failure(); err != nil {
		return l.differ(i, "the operation failed on the device", outcomeOf(l.ref.log.err), err.Error())
	}
	ref, dev := l.ref.log.entries, l.dev.log.entries
	for len(ref) > 0 && len(dev) > 0 {
		if ref[0].gives() && dev[0].gives() {
			n, m := releases(ref), releases(dev)
			if d := l.compareReleases(i, ref[:n], dev[:m]); d != nil {
				return d
			}
			ref, dev = ref[n:], dev[m:]
			continue
		}
		if d := l.compareEntry(i, ref[0], dev[0]); d != nil {
			return d
		}
		ref, dev = ref[1:], dev[1:]
	}
	switch {
	case len(ref) > 0:
		d := l.differ(i, "something did not happen on the device", ref[0].String(), "")
		d.ref = ref[:1:1]
		return d
	case len(dev) > 0:
		d := l.differ(i, "something happened on the device only", "", dev[0].String())
		d.dev = dev[:1:1]
		return d
	}
	return l.compareError(i)
}

// releases is the length of the run of releases at the start.
func releases(list []entry) int {
	n := slices.IndexFunc(list, func(e entry) bool { return !e.gives() })
	if n < 0 {
		return len(list)
	}
	return n
}

func (l *lockstep) compareEntry(i int, ref, dev entry) *difference {
	oom := ref.Action == alloc.ActionOOM.String() // its address is the free memory of the device
	obtained := ref.Action == alloc.ActionSegmentAlloc.String() || ref.Action == actionReserve
	if !l.alike(ref, dev) {
		d := l.differ(i, "the device did something else", ref.String(), dev.String())
		d.ref, d.dev = []entry{ref}, []entry{dev}
		return d
	}
	switch {
	case obtained:
		l.match.add(ref.Addr, dev.Addr, ref.Size)
	case !oom:
		if at, ok := l.match.toDev(ref.Addr); !ok || at != dev.Addr {
			d := l.differ(i, "the device did the same at another place", l.place(ref, l.match.refPlace), l.place(dev, l.match.devPlace))
			d.ref, d.dev = []entry{ref}, []entry{dev}
			return l.settle(d)
		}
	}
	return nil
}

// alike reports whether two entries agree in all but their address.
func (l *lockstep) alike(ref, dev entry) bool {
	return ref.Action == dev.Action && ref.Size == dev.Size && ref.Pool == dev.Pool && l.streams[ref.Stream] == dev.Stream
}

// place adds to an entry where in which segment it is.
func (l *lockstep) place(e entry, find func(uint64) (int, uint64, bool)) string {
	n, offset, ok := find(e.Addr)
	if !ok {
		return e.String()
	}
	return fmt.Sprintf("%s: offset %d of segment %d", e, offset, n)
}

// compareReleases compares a run of memory given back. A pool gives back its
// free segments by size and those of one size by address. So the order of equal
// ones may be another on the device, if it is that of the device's addresses.
func (l *lockstep) compareReleases(i int, ref, dev []entry) *difference {
	same := len(ref) == len(dev)
	reordered := false
	for n := 0; same && n < len(ref); n++ {
		same = l.alike(ref[n], dev[n])
		at, ok := l.match.toDev(ref[n].Addr)
		reordered = reordered || !ok || at != dev[n].Addr
	}
	if same && reordered {
		given := map[entry]int{}
		for _, e := range dev {
			given[e]++
		}
		for _, e := range ref {
			e.Addr, _ = l.match.toDev(e.Addr)
			e.Stream = l.streams[e.Stream]
			given[e]--
		}
		for _, n := range given {
			same = same && n == 0
		}
		if same {
			if why := l.dev.log.misordered(); why != "" {
				d := l.differ(i, "the device gave memory back in an order that no rule makes", describe(ref), describe(dev))
				d.NotTie = why
				return d
			}
			l.reordered++
		}
	}
	if !same {
		d := l.differ(i, "the device gave other memory back", describe(ref), describe(dev))
		d.ref, d.dev = slices.Clone(ref), slices.Clone(dev)
		if d = l.settle(d); d != nil {
			return d
		}
	}
	for _, e := range ref {
		if e.Action != alloc.ActionSegmentUnmap.String() {
			l.match.remove(e.Addr)
		}
	}
	return nil
}

func describe(list []entry) string {
	if len(list) == 1 {
		return list[0].String()
	}
	return fmt.Sprintf("%d releases, the first: %s", len(list), list[0])
}

// compareError compares how the operation ended.
func (l *lockstep) compareError(i int) *difference {
	ref, dev := l.ref.log.err, l.dev.log.err
	var oom *alloc.OutOfMemoryError
	switch {
	case ref == nil && dev == nil:
		return nil
	case errors.As(ref, &oom) && errors.As(dev, &oom):
		return nil
	}
	return l.differ(i, "the operation ended in another way", outcomeOf(ref), outcomeOf(dev))
}

// statistics lists the names of the statistics of the engine under test that
// are not those PyTorch recorded. What a recording leaves out is zero.
func (l *lockstep) statistics(want map[string]int64) []string {
	got := l.dev.allocator.Stats().Map()
	wrong := map[string]bool{}
	for _, m := range []map[string]int64{want, got} {
		for k := range m {
			if want[k] != got[k] {
				wrong[k] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(wrong))
}

// run performs the whole recording. It goes on after the runs have parted:
// the statistics show how much it matters.
func (l *lockstep) run(ctx context.Context) (*outcome, error) {
	out := &outcome{}
	next := 0
	check := func(i int) {
		for ; next < len(l.rec.Checkpoints) && l.rec.Checkpoints[next].Ops == i; next++ {
			want := l.rec.Checkpoints[next].Stats
			wrong := l.statistics(want)
			if len(wrong) == 0 {
				out.equal++
			} else if out.parted == nil {
				out.parted = l.differ(i-1, fmt.Sprintf("checkpoint %d: %d statistics differ, the first is %s", next, len(wrong), wrong[0]),
					fmt.Sprint(want[wrong[0]]), fmt.Sprint(l.dev.allocator.Stats().Map()[wrong[0]]))
			}
		}
	}
	for i := range l.rec.Ops {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		check(i)
		l.do(i)
		if out.failed = l.failure(); out.failed != nil {
			if out.parted == nil {
				out.parted = l.compare(i)
			}
			return out, nil
		}
		if out.parted == nil {
			out.parted = l.compare(i)
		} else if l.compareError(i) != nil {
			if !l.refusedOnce(i) {
				return out, nil
			}
			out.refused++
		}
		out.performed = i + 1
	}
	check(len(l.rec.Ops))
	if out.parted == nil {
		out.parted = l.compareLayout()
	}
	return out, nil
}

// outcome is how far the engine on the device did as PyTorch did.
type outcome struct {
	performed int
	equal     int         // checkpoints with all statistics equal
	refused   int         // allocations that the limit refused in one run only, after they had parted
	parted    *difference // nil if the layout was the same from beginning to end
	failed    error       // of the device, where the run was stopped
}

// outcomeOf says how an operation ended.
func outcomeOf(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}
