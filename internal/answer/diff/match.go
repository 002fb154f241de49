package diff

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// How two stacks were found to be the same; see the package comment.
const (
	MatchExact     = "exact"
	MatchLines     = "lines"
	MatchFunctions = "functions"
	MatchSite      = "site"
)

// match is a stack of one side with its like of the other. A side that has none
// is nil.
type match struct {
	a, b *timeline.LiveHolder
	how  string
}

// matchStacks pairs the holders of two sides. Every holder is in one match.
func (x *Table) matchStacks(a, b *Side) (all []match, note string) {
	tr := x.translation(a, b)
	ofA, ofB, note := x.holders(a, b)
	m := matcher{tr: tr, a: pointers(ofA), b: pointers(ofB)}
	m.rounds(MatchLines, MatchFunctions, x.trace.Stacks.Frames)
	if !tr.identity {
		m.rounds(MatchSite, MatchSite, tr.inner)
		m.rounds(MatchSite, MatchSite, tr.site)
	}
	for _, h := range m.a {
		m.out = append(m.out, match{a: h})
	}
	for _, h := range m.b {
		m.out = append(m.out, match{b: h})
	}
	return m.out, note
}

func pointers(holders []timeline.LiveHolder) []*timeline.LiveHolder {
	out := make([]*timeline.LiveHolder, len(holders))
	for i := range holders {
		out[i] = &holders[i]
	}
	return out
}

// matcher holds what is not paired yet.
type matcher struct {
	tr   *translation
	a, b []*timeline.LiveHolder
	out  []match
}

// rounds pairs stacks by a part of their frames: by lines, then by functions.
func (m *matcher) rounds(lines, functions string, part func(trace.StackID) []trace.FrameID) {
	m.round(lines, func(id trace.StackID, ofA bool) string { return m.tr.lineKey(part(id), ofA) })
	if m.tr.identity {
		return // what has other lines is another call
	}
	for _, loose := range []bool{false, true} {
		m.round(functions, func(id trace.StackID, ofA bool) string { return m.tr.functionKey(part(id), ofA, loose) })
	}
}

// round pairs the stacks with the same key, several ones in the order of their
// lines.
func (m *matcher) round(how string, key func(id trace.StackID, ofA bool) string) {
	waiting := map[string][]*timeline.LiveHolder{}
	m.sort(m.b)
	for _, h := range m.b {
		k := key(h.Stack, false)
		waiting[k] = append(waiting[k], h)
	}
	m.sort(m.a)
	taken := map[*timeline.LiveHolder]bool{}
	var left []*timeline.LiveHolder
	for _, h := range m.a {
		k := key(h.Stack, true)
		like := waiting[k]
		// Blocks without a stack are like each other and nothing else.
		i := slices.IndexFunc(like, func(o *timeline.LiveHolder) bool {
			return (o.Stack == trace.NoStack) == (h.Stack == trace.NoStack)
		})
		if i < 0 {
			left = append(left, h)
			continue
		}
		found := how
		if like[i].Stack == h.Stack {
			found = MatchExact
		}
		m.out = append(m.out, match{h, like[i], found})
		taken[like[i]] = true
		waiting[k] = slices.Delete(like, i, i+1)
	}
	m.a = left
	m.b = slices.DeleteFunc(m.b, func(h *timeline.LiveHolder) bool { return taken[h] })
}

// sort puts stacks in the order of their lines, so that the pairing does not
// depend on their sizes. Equal lines are in different files or functions.
func (m *matcher) sort(holders []*timeline.LiveHolder) {
	slices.SortFunc(holders, func(a, b *timeline.LiveHolder) int {
		return cmp.Or(m.tr.lineOrder(a.Stack, b.Stack), cmp.Compare(a.Stack, b.Stack))
	})
}
