package diff

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// translation brings the stacks of two files into one form for each round of
// the matching. Keys are texts that are equal if and only if the forms are.
type translation struct {
	x        *Table
	moved    map[trace.FrameID]trace.FrameID // frame of a -> frame of b
	inB      map[trace.FrameID]bool
	fileIDs  map[trace.StringID]uint64 // by normalised name
	funcIDs  map[trace.StringID]uint64
	names    map[string]uint64
	identity bool // both sides are of one file
}

func (x *Table) translation(a, b *Side) *translation {
	tr := &translation{
		x: x, fileIDs: map[trace.StringID]uint64{}, funcIDs: map[trace.StringID]uint64{}, names: map[string]uint64{},
		identity: a.source == b.source,
	}
	if !tr.identity {
		tr.align(a.frames, b.frames)
	}
	return tr
}

// sourceLines are the frames of a file, by line.
type sourceLines map[line]trace.FrameID

func (s sourceLines) sorted() []line { return slices.SortedFunc(maps.Keys(s), byPlace) }

// align finds out where the lines of each file of a are in b.
func (tr *translation) align(a, b []trace.FrameID) {
	tr.moved, tr.inB = map[trace.FrameID]trace.FrameID{}, make(map[trace.FrameID]bool, len(b))
	for _, id := range b {
		tr.inB[id] = true
	}
	inA, inB := tr.files(a), tr.files(b)
	paths := func(m map[string]sourceLines) []string { return slices.Sorted(maps.Keys(m)) }
	for f, g := range pairFiles(paths(inA), paths(inB)) {
		linesA, linesB := inA[f], inB[g]
		for from, to := range alignLines(linesA.sorted(), linesB.sorted()) {
			tr.moved[linesA[from]] = linesB[to]
		}
	}
}

// files sorts frames by the file they are in.
func (tr *translation) files(frames []trace.FrameID) map[string]sourceLines {
	t := tr.x.t
	out := map[string]sourceLines{}
	for _, id := range frames {
		f := t.Stacks.Frame(id)
		file := t.Strings.Text(f.File)
		if !placed(f.Line, file) {
			continue
		}
		if out[file] == nil {
			out[file] = sourceLines{}
		}
		out[file][line{f.Line, functionName(t.Strings.Text(f.Name))}] = id
	}
	return out
}

// lineKey is a list of frames with the lines of b. Lines of a that b does not
// have are like none of b, even if b has a line of that number elsewhere.
func (tr *translation) lineKey(frames []trace.FrameID, ofA bool) string {
	var key []byte
	for _, id := range frames {
		f := tr.x.t.Stacks.Frame(id)
		if !placed(f.Line, tr.x.t.Strings.Text(f.File)) {
			key = binary.AppendUvarint(key, tr.function(f)<<2|2)
			continue
		}
		onlyA := uint64(0)
		if ofA && !tr.identity {
			if to, ok := tr.moved[id]; ok {
				id = to
			} else {
				onlyA = 1
			}
		}
		key = binary.AppendUvarint(key, uint64(id)<<2|onlyA)
	}
	return string(key)
}

// functionKey is a list of frames by files and functions.
func (tr *translation) functionKey(frames []trace.FrameID) string {
	var key []byte
	for _, id := range frames {
		f := tr.x.t.Stacks.Frame(id)
		file := uint64(0)
		if placed(f.Line, tr.x.t.Strings.Text(f.File)) {
			file = tr.file(f)
		}
		key = binary.AppendUvarint(binary.AppendUvarint(key, file), tr.function(f))
	}
	return string(key)
}

// inner returns the frames of a stack from the innermost to the first one of
// the user's own program; all if there is none.
func (tr *translation) inner(id trace.StackID) []trace.FrameID {
	all := tr.x.t.Stacks.Frames(id)
	s, _ := timeline.SiteOf(tr.x.t, id)
	if !s.HasUser {
		return all
	}
	for i, f := range timeline.Frames(tr.x.t, id) {
		if f == s.User {
			return all[:i+1]
		}
	}
	return all
}

// siteKey is what a reader sees of a stack, by files and functions.
func (tr *translation) siteKey(id trace.StackID) string {
	s, _ := timeline.SiteOf(tr.x.t, id)
	key := frameKey(s.Inner)
	if s.HasUser {
		key += "\x00" + frameKey(s.User)
	}
	return key
}

func frameKey(f timeline.Frame) string {
	file := ""
	if placed(f.Line, f.Filename) {
		file = fileName(f.Filename)
	}
	return file + "\x00" + functionName(f.Name)
}

// lineOrder compares stacks of the same functions by their lines, outermost
// frame first.
func (tr *translation) lineOrder(a, b trace.StackID) int {
	t := tr.x.t.Stacks
	x, y := t.Frames(a), t.Frames(b)
	for i := 1; i <= min(len(x), len(y)); i++ {
		if c := t.Frame(x[len(x)-i]).Line - t.Frame(y[len(y)-i]).Line; c != 0 {
			return int(c)
		}
	}
	return len(x) - len(y)
}

func (tr *translation) file(f trace.Frame) uint64 {
	id, ok := tr.fileIDs[f.File]
	if !ok {
		id = tr.name("f" + fileName(tr.x.t.Strings.Text(f.File)))
		tr.fileIDs[f.File] = id
	}
	return id
}

func (tr *translation) function(f trace.Frame) uint64 {
	id, ok := tr.funcIDs[f.Name]
	if !ok {
		id = tr.name("n" + functionName(tr.x.t.Strings.Text(f.Name)))
		tr.funcIDs[f.Name] = id
	}
	return id
}

// name numbers normalised names, from 1.
func (tr *translation) name(s string) uint64 {
	id, ok := tr.names[s]
	if !ok {
		id = uint64(len(tr.names) + 1)
		tr.names[s] = id
	}
	return id
}
