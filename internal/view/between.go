package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// between is what happened to the memory between two moments.
type between struct {
	After  int  `json:"after"` // the moment after this event; -1 is before the first
	Until  int  `json:"until"`
	Events int  `json:"events"`
	Micros *int `json:"duration_us"`

	Before totalsAt `json:"at_begin"`
	End    totalsAt `json:"at_end"`
	Peak   totalsAt `json:"at_peak"`

	All        flow           `json:"all"` // of what passes the filter
	Stacks     []stackFlow    `json:"stacks"`
	Others     int            `json:"other_stacks"` // left out, because they are small
	Categories []categoryFlow `json:"categories"`

	Command string `json:"command"` // that compares the ends
}

// totalsAt are the totals after an event.
type totalsAt struct {
	Event     int    `json:"event"`
	Reserved  uint64 `json:"reserved_bytes"`
	Allocated uint64 `json:"allocated_bytes"`
	Active    uint64 `json:"active_bytes"`
	Requested uint64 `json:"requested_bytes"`
}

// flow is a [timeline.Flow] with its sum.
type flow struct {
	timeline.Flow
	Delta int64 `json:"delta_bytes"`
}

// stackFlow is the flow of one call stack.
type stackFlow struct {
	flow
	Site   string `json:"site"`
	Alloc  int    `json:"alloc"` // one of its blocks, if possible one that was kept
	Colour uint32 `json:"colour"`
}

type categoryFlow struct {
	flow
	Category findings.Category `json:"category"`
	Colour   uint32            `json:"colour"`
}

// maxFlows is how many stacks are listed of each kind: the largest changes, the
// most kept, released, passing and at the peak.
const maxFlows = 40

// moments reads after and until.
func (r *request) moments() (after, until int) {
	q := r.query
	after, until = q.event("after", -1, r.run), q.event("until", r.run.events()-1, r.run)
	if after >= until {
		q.bad("from after event %d until after event %d is no piece of the run", after, until)
	}
	return after, until
}

// between is api/between.
func (r *request) between() error {
	after, until := r.moments()
	chosen := r.selection(r.run.blocks())
	if r.query.err != nil {
		return r.query.err
	}
	return r.json(r.run.between(after, until, chosen))
}

func (r *pageRun) between(after, until int, chosen *selection) *between {
	b := timeline.NewBetween(r.lives, r.course, after, until)
	out := &between{
		After: after, Until: until, Events: until - after, Command: r.compareCommand(after, until), Before: r.totalsAt(after), End: r.totalsAt(until), Peak: r.totalsAt(b.Peak),
	}
	if r.clock.First != trace.NoTime {
		begin := r.clock.First
		if after >= 0 {
			begin = r.clock.At(after)
		}
		micros := int(r.clock.At(until) - begin)
		out.Micros = &micros
	}
	stacks := make([]stackFlow, r.trace.Stacks.Len())
	categories := make([]categoryFlow, len(findings.Categories()))
	for i := range stacks {
		stacks[i].Alloc = -1
	}
	b.Each(func(i int) {
		if !chosen.has(i) {
			return
		}
		s := &stacks[b.Stack(i)]
		kept := s.Kept.Blocks
		b.Count(&s.Flow, i)
		if s.Alloc < 0 || kept == 0 && s.Kept.Blocks > 0 {
			s.Alloc = i
		}
		b.Count(&categories[chosen.of.category(i)].Flow, i)
	})
	for i := range stacks {
		out.All.Add(&stacks[i].Flow)
	}
	out.All.sum()
	out.Stacks, out.Others = r.largestFlows(stacks)
	out.Categories = []categoryFlow{}
	for i := range categories {
		c := &categories[i]
		if c.Before.Blocks+c.Kept.Blocks+c.Passing.Blocks == 0 {
			continue
		}
		c.sum()
		c.Category, c.Colour = findings.Categories()[i], uint32(i)
		out.Categories = append(out.Categories, *c)
	}
	slices.SortStableFunc(out.Categories, func(x, y categoryFlow) int { return byChange(&x.flow, &y.flow) })
	return out
}

// compareCommand is the command line that compares two moments of the run.
func (r *pageRun) compareCommand(after, until int) string {
	at := diff.Start
	if after >= 0 {
		at = diff.Event(after)
	}
	line := fmt.Sprintf("ashlar diff %s --at %v --at %v", shellWord(r.input.Name), at, diff.Event(until))
	switch {
	case r.device.Host:
		line += " --device host"
	case r.device.Given() && len(r.input.Snapshot.Traces) > 1:
		line += fmt.Sprint(" --device ", r.device.Number)
	}
	return line
}

// shellWord writes a text as one word of a shell.
func shellWord(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+=:,@%", c)
	}
	if s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !plain(c) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (f *flow) sum() { f.Delta = f.Flow.Delta() }

func (r *pageRun) totalsAt(event int) totalsAt {
	l := r.course.At(event)
	return totalsAt{event, l.Reserved, l.Allocated, l.Active, l.Requested}
}

// byChange puts the largest change first.
func byChange(x, y *flow) int {
	return cmp.Or(cmp.Compare(max(y.Delta, -y.Delta), max(x.Delta, -x.Delta)), cmp.Compare(y.Delta, x.Delta))
}

// largestFlows chooses the stacks that somebody may want to see, the largest
// change first, and counts the others.
func (r *pageRun) largestFlows(all []stackFlow) (out []stackFlow, others int) {
	var some []trace.StackID
	for i := range all {
		if all[i].Alloc >= 0 {
			all[i].sum()
			some = append(some, trace.StackID(i))
		}
	}
	listed := map[trace.StackID]bool{}
	for _, amount := range []func(f *flow) uint64{
		func(f *flow) uint64 { return f.Kept.Bytes },
		func(f *flow) uint64 { return f.Released.Bytes },
		func(f *flow) uint64 { return f.Passing.Bytes },
		func(f *flow) uint64 { return f.Peak.Bytes },
		func(f *flow) uint64 { return uint64(max(f.Delta, -f.Delta)) },
	} {
		slices.SortStableFunc(some, func(x, y trace.StackID) int { return cmp.Compare(amount(&all[y].flow), amount(&all[x].flow)) })
		for _, id := range some[:min(len(some), maxFlows)] {
			listed[id] = true
		}
	}
	colours := r.colours()
	out = []stackFlow{}
	for _, id := range some {
		if !listed[id] {
			continue
		}
		s := all[id]
		s.Site, s.Colour = r.site(id), colours[id]
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(x, y stackFlow) int { return byChange(&x.flow, &y.flow) })
	return out, len(some) - len(out)
}
