package planted

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// source is the lines of a program's own files at a commit: where each line of
// the recording is by then.
type source map[string]map[int64]int64

// newSource returns the files as they were recorded.
func newSource(r *recording) source {
	out := source{}
	for i := range r.trace.Stacks.NumFrames() {
		f := frameOf(r.trace, trace.FrameID(i))
		if !f.User() {
			continue
		}
		if out[f.Filename] == nil {
			out[f.Filename] = map[int64]int64{}
		}
		out[f.Filename][f.Line] = f.Line
	}
	return out
}

func frameOf(t *trace.Trace, id trace.FrameID) timeline.Frame {
	f := t.Stacks.Frame(id)
	return timeline.Frame{Name: t.Strings.Text(f.Name), Filename: t.Strings.Text(f.File), Line: f.Line}
}

const (
	maxEdits = 3
	maxMoved = 30
)

// edited returns the files after some lines were added or removed at random
// places. Lines that call something stay, in their order.
func (s source) edited(rng *rand.Rand) source {
	out := source{}
	for _, file := range slices.Sorted(maps.Keys(s)) {
		lines := maps.Clone(s[file])
		for range rng.IntN(maxEdits + 1) {
			at := slices.Sorted(maps.Values(lines))
			i := rng.IntN(len(at))
			by := int64(1 + rng.IntN(maxMoved))
			first := at[i] // this line and all below it move
			room := first - 1
			if i > 0 {
				room = first - at[i-1] - 1
			}
			if rng.IntN(3) == 0 {
				by = -min(by, room)
			}
			for from, to := range lines {
				if to >= first {
					lines[from] = to + by
				}
			}
		}
		out[file] = lines
	}
	return out
}

// apply moves the lines of a snapshot, and its own files into another folder.
func (s source) apply(f *snapshot.File, folder string) {
	old := f.Traces[0]
	texts := &trace.Strings{}
	for i := range old.Strings.Len() {
		texts.Add(old.Strings.Text(trace.StringID(i + 1)))
	}
	stacks := trace.NewStacks()
	stacks.Extra = old.Stacks.Extra
	for i := range old.Stacks.NumFrames() {
		moved := old.Stacks.Frame(trace.FrameID(i))
		if was := frameOf(old, trace.FrameID(i)); s[was.Filename] != nil {
			moved.Line = s[was.Filename][was.Line]
			moved.File = texts.Add(path.Join(folder, path.Base(was.Filename)))
		}
		stacks.AddFrame(moved)
	}
	for id := int(trace.EmptyStack) + 1; id < old.Stacks.Len(); id++ {
		stacks.Add(old.Stacks.Frames(trace.StackID(id)))
	}
	for _, t := range f.Traces {
		t.Strings, t.Stacks = texts, stacks
	}
	if f.Host != nil {
		f.Host.Strings, f.Host.Stacks = texts, stacks
	}
}
