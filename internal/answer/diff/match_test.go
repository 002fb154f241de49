package diff

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// side makes a side of stacks, whose frames are named as "file function line".
func (x *Table) side(holders map[string]uint64) *Side {
	x.sources++
	s := &Side{source: x.sources, Active: new(uint64), Requested: new(uint64)}
	seen := map[trace.FrameID]bool{}
	for _, text := range slices.Sorted(maps.Keys(holders)) {
		size := holders[text]
		var ids []trace.FrameID
		for len(text) > 0 {
			id := x.trace.Stacks.AddFrame(trace.Frame{
				File: x.trace.Strings.Add("/x/" + text[:1] + ".py"), Name: x.trace.Strings.Add(text[1:2]), Line: int64(text[2] - '0'),
			})
			ids, text = append(ids, id), text[3:]
			if !seen[id] {
				seen[id] = true
				s.frames = append(s.frames, id)
			}
		}
		stack := trace.NoStack
		if len(ids) > 0 {
			stack = x.trace.Stacks.Add(ids)
		}
		s.holders = append(s.holders, timeline.LiveHolder{Stack: stack, Size: size, Blocks: 1})
		*s.Active += size
		s.Blocks++
	}
	return s
}

// Random stacks of few functions, many of them alike: nothing is lost, and the
// answer does not depend on the order of anything.
func TestMatchingLosesNothing(t *testing.T) {
	frame := rapid.StringMatching(`[mn][fg][1-6]`)
	stack := rapid.Custom(func(t *rapid.T) string {
		out := ""
		for _, f := range rapid.SliceOfN(frame, 0, 3).Draw(t, "frames") {
			out += f
		}
		return out
	})
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.MapOfN(stack, rapid.Uint64Range(1, 1000), 0, 12)
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		var first string
		for range 3 { // the same input gives the same answer
			x := NewTable()
			d := x.Compare(x.side(a), x.side(b))
			sum := int64(0)
			var text []string
			for _, s := range d.Stacks {
				sum += s.Delta
				text = append(text, fmt.Sprint(s.Change, s.Delta, s.ABytes, s.BBytes, s.ABlocks, s.BBlocks, s.Frames, s.AFrames))
			}
			var want int64
			for _, size := range a {
				want -= int64(size)
			}
			for _, size := range b {
				want += int64(size)
			}
			if sum != want || d.Delta != want || len(d.Notes) > 0 && d.Notes[0] != "one side has no call stacks: nothing can be matched" {
				t.Fatalf("%d, %d, want %d; %q", sum, d.Delta, want, d.Notes)
			}
			slices.Sort(text)
			if first == "" {
				first = fmt.Sprint(text)
			}
			if fmt.Sprint(text) != first {
				t.Fatalf("got %s, before %s", text, first)
			}
		}
	})
}

func TestMatchingInOrderOfLines(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b map[string]uint64
		want string // "A:B how" by size
	}{
		{"exact", map[string]uint64{"mf1": 1, "mf2": 2}, map[string]uint64{"mf2": 20, "mf1": 10}, "[1:10 exact 2:20 exact]"},
		{"one function at other lines", map[string]uint64{"mf1": 1, "mf3": 2}, map[string]uint64{"mf5": 10, "mf7": 20}, "[1:10 lines 2:20 lines]"},
		{"functions that changed places", map[string]uint64{"mf1": 1, "mg5": 5}, map[string]uint64{"mg1": 10, "mf5": 50}, "[1:50 lines 5:10 functions]"},
		{"a known line is not another one", map[string]uint64{"mf1": 1, "mf1mg9": 2, "mf2": 3}, map[string]uint64{"mf1": 10, "mf2mg9": 20, "mf2": 30}, "[0:20 1:10 exact 2:0 3:30 exact]"},
		{"exact first, the rest in order", map[string]uint64{"mf1": 1, "mf2": 2, "mf3": 3}, map[string]uint64{"mf2": 20, "mf8": 80}, "[1:80 functions 2:20 exact 3:0]"},
		{"no stack is like no stack only", map[string]uint64{"": 1}, map[string]uint64{"mf1": 10, "": 20}, "[0:10 1:20 exact]"},
		{"another function", map[string]uint64{"mf1": 1}, map[string]uint64{"mg1": 10}, "[0:10 1:0]"},
		{"another caller", map[string]uint64{"mf1ng1": 1}, map[string]uint64{"mf1nf5": 10}, "[1:10 site]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := NewTable()
			var got []string
			for _, s := range x.Compare(x.side(test.a), x.side(test.b)).Stacks {
				text := fmt.Sprintf("%d:%d", s.ABytes, s.BBytes)
				if s.Matched != nil {
					text += " " + *s.Matched
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if fmt.Sprint(got) != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}
