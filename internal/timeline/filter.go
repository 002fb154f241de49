package timeline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/spelling"
	"github.com/ashlar-mem/ashlar/trace"
)

// Filter chooses events by what they are about. All that is set must hold.
type Filter struct {
	// Actions are names, also free and segment for all of their kind; none is all.
	Actions      []string
	Stack        *regexp.Regexp // is looked for in each "file:line function"
	Min          uint64         // sizes
	Max          *uint64
	Addr, Stream *uint64 // Addr finds all whose memory it lies in
	Pool         *alloc.PoolID
}

// Matcher is a filter for the events of one trace.
type Matcher struct {
	Filter
	action [256]bool
	stacks []bool
}

// ActionError says that there is no action of a name.
type ActionError struct {
	Name string
	Have []string
}

func (e *ActionError) Error() string {
	return fmt.Sprintf("%q: there is no such action; there are %s, and free and segment for all of their kind%s", e.Name, strings.Join(e.Have, ", "),
		spelling.DidYouMean(e.Name, e.Have))
}

// actionGroups are names for several actions.
var actionGroups = map[string][]string{
	"free":    {alloc.ActionFreeRequested.String(), alloc.ActionFreeCompleted.String()},
	"segment": {alloc.ActionSegmentAlloc.String(), alloc.ActionSegmentFree.String(), alloc.ActionSegmentMap.String(), alloc.ActionSegmentUnmap.String()},
}

// For prepares the filter for a trace. The error is an *[ActionError].
func (f Filter) For(t *trace.Trace) (*Matcher, error) {
	m := &Matcher{Filter: f}
	known := map[string]trace.Action{}
	for a := alloc.ActionAlloc; a <= alloc.ActionSnapshot; a++ {
		known[a.String()] = a
	}
	for i, name := range t.Events.Others {
		known[name] = trace.FirstOther + trace.Action(i)
	}
	for _, name := range f.Actions {
		names := []string{strings.TrimSpace(name)}
		if group, ok := actionGroups[names[0]]; ok {
			names = group
		}
		for _, n := range names {
			a, ok := known[n]
			if !ok {
				all := make([]string, 0, len(known))
				for n := range known {
					all = append(all, n)
				}
				slices.Sort(all)
				return nil, &ActionError{n, all}
			}
			m.action[a] = true
		}
	}
	if f.Stack != nil {
		m.stacks = MatchStacks(t, f.Stack)
	}
	return m, nil
}

// Matches reports whether the event at a cursor passes.
func (m *Matcher) Matches(c *Cursor) bool {
	e := &c.Event
	switch {
	case len(m.Actions) > 0 && !m.action[e.Action]:
		return false
	case e.Size < m.Min || m.Max != nil && e.Size > *m.Max:
		return false
	case m.Stream != nil && e.Stream != *m.Stream:
		return false
	case m.Addr != nil && !holds(e, *m.Addr):
		return false
	case m.stacks != nil && !m.stacks[e.Stack]:
		return false
	case m.Pool != nil:
		pool, ok := c.Pool()
		return ok && pool == *m.Pool
	}
	return true
}

// holds reports whether an address lies in the memory of an event.
func holds(e *trace.Event, addr uint64) bool {
	if e.Action == alloc.ActionOOM || e.Action == alloc.ActionSnapshot {
		return false
	}
	return addr == e.Addr || addr > e.Addr && addr-e.Addr < e.Size
}

// MatchStacks reports for each stack of a trace whether one of its frames, as
// "file:line function", matches. Each frame is looked at once.
func MatchStacks(t *trace.Trace, re *regexp.Regexp) []bool {
	frames := MatchFrames(t, re)
	out := make([]bool, t.Stacks.Len())
	for i := range out {
		for _, f := range t.Stacks.Frames(trace.StackID(i)) {
			if frames[f] {
				out[i] = true
				break
			}
		}
	}
	return out
}

// MatchFrames reports for each frame of a trace whether it matches as
// "file:line function".
func MatchFrames(t *trace.Trace, re *regexp.Regexp) []bool {
	out := make([]bool, t.Stacks.NumFrames())
	for i := range out {
		f := t.Stacks.Frame(trace.FrameID(i))
		out[i] = re.MatchString(fmt.Sprintf("%s:%d %s", t.Strings.Text(f.File), f.Line, t.Strings.Text(f.Name)))
	}
	return out
}
