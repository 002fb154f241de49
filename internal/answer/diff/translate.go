package diff

import (
	"encoding/binary"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// translation brings the stacks of two files into one form for each round of
// the matching. Keys are texts that are equal if and only if the forms are.
type translation struct {
	table    *Table
	moved    map[trace.FrameID]trace.FrameID // frame of a -> frame of b
	known    map[trace.FrameID]bool          // the frames of b that one of a became
	edited   map[string]bool                 // files whose lines moved
	fileIDs  map[trace.StringID]uint64       // by normalised name
	funcIDs  map[trace.StringID]uint64
	names    map[string]uint64
	identity bool // both sides are of one file
}

func (x *Table) translation(a, b *Side) *translation {
	tr := x.newTranslation()
	tr.identity = a.source == b.source
	if !tr.identity {
		tr.align(a.frames, b.frames, alignLines)
	}
	return tr
}

func (x *Table) newTranslation() *translation {
	return &translation{table: x, fileIDs: map[trace.StringID]uint64{}, funcIDs: map[trace.StringID]uint64{}, names: map[string]uint64{}}
}

// align finds out where the lines of each file of a are in b. pair does so for one
// file.
func (tr *translation) align(a, b []trace.FrameID, pair func(a, b []line) map[line]line) {
	tr.moved, tr.known, tr.edited = map[trace.FrameID]trace.FrameID{}, map[trace.FrameID]bool{}, map[string]bool{}
	inA, inB := tr.files(a), tr.files(b)
	for f, g := range pairFiles(inA, inB) {
		linesA, linesB := inA[f], inB[g]
		for from, to := range pair(linesA.sorted(), linesB.sorted()) {
			if from.number != to.number {
				tr.edited[f], tr.edited[g] = true, true
			}
			tr.moved[linesA[from]] = linesB[to]
			tr.known[linesB[to]] = true
		}
	}
}

// files sorts frames by the file they are in.
func (tr *translation) files(frames []trace.FrameID) map[string]sourceLines {
	t := tr.table.trace
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

// lineKey returns a list of frames with the lines of b. Lines of a that b does
// not have are like none of b, even if b has a line of that number elsewhere.
func (tr *translation) lineKey(frames []trace.FrameID, ofA bool) string {
	var key []byte
	for _, id := range frames {
		f := tr.table.trace.Stacks.Frame(id)
		if !placed(f.Line, tr.table.trace.Strings.Text(f.File)) {
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

// functionKey returns a list of frames by files and functions, as far as it is
// not known what became of their lines. Of edited files that may be an error:
// loose ignores all of their lines.
func (tr *translation) functionKey(frames []trace.FrameID, ofA, loose bool) string {
	var key []byte
	for _, id := range frames {
		f := tr.table.trace.Stacks.Frame(id)
		file := tr.table.trace.Strings.Text(f.File)
		if !placed(f.Line, file) {
			key = binary.AppendUvarint(key, tr.function(f)<<2|2)
			continue
		}
		to, ok := id, tr.known[id]
		if ofA {
			to, ok = tr.moved[id]
		}
		ok = ok && (!loose || !tr.edited[file])
		if ok {
			key = binary.AppendUvarint(key, uint64(to)<<2)
			continue
		}
		key = binary.AppendUvarint(key, tr.file(f)<<2|3)
		key = binary.AppendUvarint(key, tr.function(f))
	}
	return string(key)
}

// inner returns the frames of a stack from the innermost to the first one of
// the user's own program; all if there is none.
func (tr *translation) inner(id trace.StackID) []trace.FrameID {
	all := tr.table.trace.Stacks.Frames(id)
	if s, _ := timeline.SiteOf(tr.table.trace, id); s.HasUser {
		return all[:tr.find(all, s.User)+1]
	}
	return all
}

// site returns the frames that a reader sees of a stack.
func (tr *translation) site(id trace.StackID) []trace.FrameID {
	all := tr.table.trace.Stacks.Frames(id)
	if len(all) == 0 {
		return nil
	}
	s, _ := timeline.SiteOf(tr.table.trace, id)
	out := []trace.FrameID{all[tr.find(all, s.Inner)]}
	if s.HasUser {
		out = append(out, all[tr.find(all, s.User)])
	}
	return out
}

// find returns where a frame is first.
func (tr *translation) find(frames []trace.FrameID, want timeline.Frame) int {
	t := tr.table.trace
	return max(0, slices.IndexFunc(frames, func(id trace.FrameID) bool {
		f := t.Stacks.Frame(id)
		return f.Line == want.Line && t.Strings.Text(f.Name) == want.Name && t.Strings.Text(f.File) == want.Filename
	}))
}

// lineOrder compares stacks of the same functions by their lines, outermost
// frame first.
func (tr *translation) lineOrder(a, b trace.StackID) int {
	t := tr.table.trace.Stacks
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
		id = tr.name("f" + fileName(tr.table.trace.Strings.Text(f.File)))
		tr.fileIDs[f.File] = id
	}
	return id
}

func (tr *translation) function(f trace.Frame) uint64 {
	id, ok := tr.funcIDs[f.Name]
	if !ok {
		id = tr.name("n" + functionName(tr.table.trace.Strings.Text(f.Name)))
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
