package view

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// stackLook is how call stacks are looked at.
type stackLook struct {
	own    bool // without the frames of libraries
	view   string
	zoom   []trace.FrameID // the path to the node that the picture is zoomed to
	middle int             // of a sandwich; -1: the frame that allocated most
	search *regexp.Regexp  // nil: nothing is looked for
}

// stackLook reads user, view, zoom, frame and q.
func (r *request) stackLook() *stackLook {
	q := r.query
	frames := r.run.trace.Stacks.NumFrames()
	l := &stackLook{own: q.flag("user"), view: q.choice("view", viewDown, viewUp, viewSandwich), middle: q.integer("frame", -1, 0, frames-1)}
	if text := q.values.Get("zoom"); text != "" {
		for word := range strings.SplitSeq(text, ".") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 0 || n >= frames {
				q.bad("zoom is %q: write the numbers of frames from the root on, such as 3.17.4; the file has %d frames", text, frames)
				break
			}
			l.zoom = append(l.zoom, trace.FrameID(n))
		}
	}
	if q.has("q") {
		l.search = q.expression("q")
	}
	return l
}

// stackTree looks at stacks.
func (r *pageRun) stackTree(weights map[trace.StackID]weight, l *stackLook) *stackTree {
	all := r.paths(weights, l.own)
	frame := func(id trace.FrameID) (timeline.Frame, bool) { return r.frame(id), r.own()[id] }
	nodes, callers, middle := newEmptyTree(frame), newEmptyTree(frame), l.middle
	switch l.view {
	case viewSandwich:
		if middle < 0 {
			middle = mostAllocating(all)
		}
		all = sandwich(all, middle, nodes, callers)
	case viewUp:
		for i := range all {
			slices.Reverse(all[i].path)
			nodes.add(all[i].path, all[i].weight)
		}
	default:
		for i := range all {
			nodes.add(all[i].path, all[i].weight)
		}
	}
	nodes.build()
	callers.build()
	way, zoomed := []int32(nil), all
	if l.view != viewSandwich {
		way = nodes.find(l.zoom)
		zoomed = slices.DeleteFunc(slices.Clone(all), func(p stackPath) bool {
			return len(p.path) < len(way) || !slices.Equal(p.path[:len(way)], l.zoom[:len(way)])
		})
	}
	total := nodes.nodes[0].total
	out := &stackTree{Total: whole(total.bytes), A: whole(total.a), B: whole(total.b), Zoomed: len(way), Sites: r.stackSites(zoomed, l.view)}
	if l.search != nil {
		out.Found = r.search(all, l.search, nodes, callers)
	}
	out.Nodes = nodes.flatten(way)
	if l.view == viewSandwich {
		out.Middle, out.Callers = &middle, callers.flatten(nil)
	}
	return out
}

// sandwich grows two trees from the frame in the middle: what it calls, and who
// calls it. A frame that calls itself counts once, where it is called first. It
// returns the stacks that have the frame.
func sandwich(all []stackPath, middle int, callees, callers *tree) (with []stackPath) {
	for _, p := range all {
		i := slices.Index(p.path, trace.FrameID(middle))
		if middle < 0 || i < 0 {
			continue
		}
		with = append(with, p)
		callees.grow(p.path[i:], p.weight)
		up := slices.Clone(p.path[:i])
		slices.Reverse(up)
		callers.grow(up, p.weight)
	}
	return with
}

// mostAllocating is the frame that allocated most itself, -1 if there is none.
func mostAllocating(all []stackPath) int {
	self := map[trace.FrameID]float64{}
	best := -1
	for _, p := range all {
		n := len(p.path)
		if n == 0 {
			continue
		}
		f := p.path[n-1]
		self[f] += p.bytes
		if best < 0 || self[f] > self[trace.FrameID(best)] {
			best = int(f)
		}
	}
	return best
}

// search marks what an expression finds in the frames of both trees, and adds up
// the stacks that have such a frame.
func (r *pageRun) search(all []stackPath, re *regexp.Regexp, trees ...*tree) *stackFound {
	matching := timeline.MatchFrames(r.trace, re)
	found := &stackFound{}
	bytes := 0.0
	for _, p := range all {
		if p.bytes > 0 && slices.ContainsFunc(p.path, func(f trace.FrameID) bool { return matching[f] }) {
			bytes += p.bytes
			found.Blocks += p.blocks
		}
	}
	for _, t := range trees {
		found.Frames += t.mark(matching)
	}
	found.Bytes = whole(bytes)
	return found
}

// stackSites adds stacks up by the place that allocated, the most first.
func (r *pageRun) stackSites(some []stackPath, view string) []stackSite {
	type sum struct {
		weight
		best stackPath
	}
	at := map[string]*sum{}
	names := []string{}
	for _, p := range some {
		name := r.site(p.stack)
		s := at[name]
		if s == nil {
			s = &sum{best: p}
			at[name] = s
			names = append(names, name)
		}
		s.add(p.weight)
		if p.bytes > s.best.bytes {
			s.best = p
		}
	}
	slices.SortStableFunc(names, func(x, y string) int { return cmp.Compare(at[y].bytes, at[x].bytes) })
	out := []stackSite{}
	for _, name := range names[:min(len(names), maxSites)] {
		s := at[name]
		if s.bytes == 0 {
			break
		}
		one := stackSite{Site: name, Bytes: whole(s.bytes), Blocks: s.blocks, A: whole(s.a), B: whole(s.b), Path: []int{}}
		for _, f := range s.best.path {
			if one.Path = append(one.Path, int(f)); view == viewUp {
				break // the first frame is the place
			}
		}
		out = append(out, one)
	}
	return out
}
