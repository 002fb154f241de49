package view

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// heldStacks adds up what is active after an event by walking all blocks.
func heldStacks(r *pageRun, event int) (bytes map[trace.StackID]uint64, blocks map[trace.StackID]int) {
	bytes, blocks = map[trace.StackID]uint64{}, map[trace.StackID]int{}
	for i := range r.lives.Len() {
		if int(r.lives.Born[i]) <= event && event < int(r.lives.Gone[i]) {
			bytes[r.lives.Stack(i)] += r.lives.Size[i]
			blocks[r.lives.Stack(i)]++
		}
	}
	return bytes, blocks
}

// sumWhere adds up the stacks whose frames, innermost first, satisfy a condition.
func sumWhere(r *pageRun, bytes map[trace.StackID]uint64, is func(frames []trace.FrameID) bool) (sum uint64) {
	for id, n := range bytes {
		if is(r.trace.Stacks.Frames(id)) {
			sum += n
		}
	}
	return sum
}

// Bottom-up, every root has what its frame allocated itself, and below it who
// called it.
func TestStacksBottomUp(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, _ := c.s.runs.ready(1)
	event := r.allocatedPeak().Event
	bytes, _ := heldStacks(r, event)
	var s stackTree
	c.json(fmt.Sprintf("api/stacks?run=1&event=%d&view=up", event), &s)
	s.check(t, "bottom-up")
	roots := 0
	for i, n := range s.Nodes {
		if n.Frame < 0 {
			continue
		}
		switch n.Depth {
		case 0:
			roots++
			want := sumWhere(r, bytes, func(f []trace.FrameID) bool { return len(f) > 0 && f[0] == trace.FrameID(n.Frame) })
			if n.Bytes != want {
				t.Errorf("%s allocated %d bytes, want %d", n.Name, n.Bytes, want)
			}
		case 1:
			leaf := s.Nodes[i-1]
			if leaf.Depth != 0 {
				continue
			}
			want := sumWhere(r, bytes, func(f []trace.FrameID) bool {
				return len(f) > 1 && f[0] == trace.FrameID(leaf.Frame) && f[1] == trace.FrameID(n.Frame)
			})
			if n.Bytes != want {
				t.Errorf("%s below %s has %d bytes, want %d", n.Name, leaf.Name, n.Bytes, want)
			}
		}
	}
	if roots < 2 {
		t.Errorf("there are %d roots", roots)
	}
}

// A sandwich has every stack that has the frame in the middle, once.
func TestStacksSandwich(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, _ := c.s.runs.ready(1)
	event := r.allocatedPeak().Event
	bytes, _ := heldStacks(r, event)
	var down stackTree
	c.json(fmt.Sprintf("api/stacks?run=1&event=%d", event), &down)
	for _, n := range down.Nodes {
		if n.Frame < 0 || n.Depth%3 != 0 {
			continue
		}
		var s stackTree
		c.json(fmt.Sprintf("api/stacks?run=1&event=%d&view=sandwich&frame=%d", event, n.Frame), &s)
		s.check(t, n.Name)
		want := sumWhere(r, bytes, func(f []trace.FrameID) bool { return slices.Contains(f, trace.FrameID(n.Frame)) })
		if s.Total != want || s.Nodes[0].Frame != n.Frame || s.Nodes[0].Bytes != want {
			t.Fatalf("%s has %d bytes in the middle and %d in all, want %d", s.Nodes[0].Name, s.Nodes[0].Bytes, s.Total, want)
		}
		above := uint64(0)
		for _, u := range s.Callers {
			if u.Depth == 0 {
				above += u.Bytes
			}
		}
		called := sumWhere(r, bytes, func(f []trace.FrameID) bool {
			return slices.Contains(f, trace.FrameID(n.Frame)) && f[len(f)-1] != trace.FrameID(n.Frame)
		})
		if above != called {
			t.Fatalf("%s is called for %d bytes, want %d", n.Name, above, called)
		}
	}
	// Without a frame it is the one that allocated most.
	var s stackTree
	c.json(fmt.Sprintf("api/stacks?run=1&event=%d&view=sandwich", event), &s)
	var up stackTree
	c.json(fmt.Sprintf("api/stacks?run=1&event=%d&view=up", event), &up)
	if s.Nodes[0].Frame != up.Nodes[0].Frame {
		t.Errorf("in the middle is %s, %s allocated most", s.Nodes[0].Name, up.Nodes[0].Name)
	}
}

// The list of places follows the zoom, and what is zoomed to shows more of itself.
func TestStacksZoom(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	for _, view := range []string{viewDown, viewUp} {
		var s stackTree
		c.json("api/stacks?run=1&peak=1&view="+view, &s)
		var path []string
		for i, n := range s.Nodes {
			if path = append(path[:n.Depth], fmt.Sprint(n.Frame)); n.Frame < 0 || i%5 > 0 {
				continue
			}
			zoom := strings.Join(path, ".")
			var z stackTree
			c.json("api/stacks?run=1&peak=1&view="+view+"&zoom="+zoom, &z)
			z.check(t, zoom)
			if z.Zoomed != n.Depth+1 || z.Total != s.Total || len(z.Nodes) < len(s.Nodes) {
				t.Errorf("zoom=%s finds %d of %d frames, %d nodes instead of %d", zoom, z.Zoomed, n.Depth+1, len(z.Nodes), len(s.Nodes))
			}
			sum := uint64(0)
			for _, p := range z.Sites {
				sum += p.Bytes
			}
			if len(z.Sites) < maxSites && sum != n.Bytes || sum > n.Bytes || len(z.Sites) == 0 {
				t.Errorf("zoom=%s: the places have %d bytes, the node %d", zoom, sum, n.Bytes)
			}
		}
		var gone stackTree
		c.json(fmt.Sprintf("api/stacks?run=1&peak=1&view=%s&zoom=%d.%d", view, s.Nodes[0].Frame, s.Nodes[0].Frame), &gone)
		if gone.Zoomed != 1 {
			t.Errorf("a path that ends after one frame has %d", gone.Zoomed)
		}
	}
}

// A search counts what walking all blocks counts, in every view.
func TestStacksSearchCounts(t *testing.T) {
	c := serve(t, nil, "snapshots/gpt2_varlen-tight-default")
	r, _ := c.s.runs.ready(1)
	event := r.allocatedPeak().Event
	bytes, blocks := heldStacks(r, event)
	for _, expression := range []string{"cross_entropy", "forward", "nowhere", "gpt2.*:[0-9]+ "} {
		matching := timeline.MatchStacks(r.trace, regexp.MustCompile(expression))
		want := stackFound{}
		for id, n := range bytes {
			if matching[id] {
				want.Bytes += n
				want.Blocks += blocks[id]
			}
		}
		for _, view := range []string{viewDown, viewUp} {
			var s stackTree
			c.json(fmt.Sprintf("api/stacks?run=1&event=%d&view=%s&q=%s", event, view, url.QueryEscape(expression)), &s)
			s.check(t, expression)
			marked := 0
			for _, n := range s.Nodes {
				if n.Match {
					marked++
				}
			}
			if s.Found.Bytes != want.Bytes || s.Found.Blocks != want.Blocks || s.Found.Frames != marked {
				t.Errorf("%s, %s finds %+v with %d marks, want %+v", view, expression, *s.Found, marked, want)
			}
		}
	}
}

// What changed between two moments is what api/between says, stack by stack.
func TestStacksChange(t *testing.T) {
	c := serve(t, nil, "snapshots/leak_graph-tight-default")
	r, _ := c.s.runs.ready(1)
	for _, p := range [][2]int{{-1, 4000}, {3000, 6000}, {8000, r.events() - 1}} {
		a, _ := heldStacks(r, p[0])
		b, _ := heldStacks(r, p[1])
		change, larger := uint64(0), uint64(0)
		for id := range r.trace.Stacks.Len() {
			x, y := a[trace.StackID(id)], b[trace.StackID(id)]
			larger += max(x, y)
			change += max(x, y) - min(x, y)
		}
		moments := fmt.Sprintf("run=1&after=%d&until=%d", p[0], p[1])
		var with between
		c.json("api/between?"+moments, &with)
		for width, want := range map[string]uint64{widthChange: change, widthLarger: larger} {
			for _, view := range []string{viewDown, viewUp} {
				var s stackTree
				c.json("api/stacks?"+moments+"&q=forward&width="+width+"&view="+view, &s)
				s.check(t, moments)
				marked := 0
				for _, n := range s.Nodes {
					if n.Match {
						marked++
					}
				}
				if marked != s.Found.Frames || marked == 0 {
					t.Errorf("%s, %s, %s: %d frames are marked, %d found", moments, width, view, marked, s.Found.Frames)
				}
				if s.Total != want || int64(s.B)-int64(s.A) != with.All.Delta || s.Event != nil {
					t.Errorf("%s, %s, %s: %d bytes wide, want %d; %d to %d, between says %+d", moments, width, view, s.Total, want, s.A, s.B, with.All.Delta)
				}
			}
		}
	}
}

func checkWord(t *testing.T, c *client, query string, wrong bool) {
	t.Helper()
	var got checked
	c.json("api/check?run=1&"+query, &got)
	if (got.Wrong != nil) != wrong {
		t.Errorf("%s: %v", query, got.Wrong)
	}
}

// What is typed is judged without an error.
func TestCheck(t *testing.T) {
	c := serve(t, nil, "variety/ring")
	for text, wrong := range map[string]bool{"": false, "forward": false, "a%7Bb": false, "(": true, "%5B%5B:alpha:%5D": true, `%5C1`: true, strings.Repeat("x", 1001): true} {
		checkWord(t, c, "stack="+text, wrong)
	}
	for text, wrong := range map[string]bool{"size=1GiB": false, "size=1Gi": true, "size=x": true, "addr=0x7f00": false, "addr=0x": true} {
		checkWord(t, c, text, wrong)
	}
}
