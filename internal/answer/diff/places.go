package diff

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Listing is what is known of the source files of a program: the frames of its
// call stacks.
type Listing struct{ frames []trace.FrameID }

// Listing brings frames into the table. Their order does not matter.
func (x *Table) Listing(frames []timeline.Frame) *Listing { return &Listing{x.frameIDs(frames)} }

// frameIDs returns the numbers of frames in the table.
func (x *Table) frameIDs(frames []timeline.Frame) []trace.FrameID {
	out := make([]trace.FrameID, len(frames))
	for i, f := range frames {
		out[i] = x.trace.Stacks.AddFrame(trace.Frame{
			Name: x.trace.Strings.Add(f.Name), File: x.trace.Strings.Add(f.Filename), Line: f.Line,
		})
	}
	return out
}

// Alignment tells which lines of a program are which of another copy of it.
type Alignment struct{ tr *translation }

// Align finds the lines of one listing in another as [Table.Compare] does it for
// two sides. edited says that the source is known to be of another version: then
// a file that shows the same functions in the same order has the same calls, at
// lines that moved. Otherwise it may be the same file, of which other lines ran.
func (x *Table) Align(a, b *Listing, edited bool) *Alignment {
	tr := x.newTranslation()
	pair := alignLines
	if edited {
		pair = alignVersions
	}
	tr.align(a.frames, b.frames, pair)
	return &Alignment{tr}
}

// alignVersions pairs the lines of two versions of a file.
func alignVersions(a, b []line) map[line]line {
	if !slices.EqualFunc(a, b, func(x, y line) bool { return x.function == y.function }) {
		return alignLines(a, b)
	}
	out := make(map[line]line, len(a))
	for i := range a {
		out[a[i]] = b[i]
	}
	return out
}

// Match says how frames of the first listing are the same as frames of the
// second: [MatchLines], [MatchFunctions], or "" if they are not.
func (al *Alignment) Match(a, b []timeline.Frame) string {
	ofA, ofB := al.tr.table.frameIDs(a), al.tr.table.frameIDs(b)
	switch {
	case al.tr.lineKey(ofA, true) == al.tr.lineKey(ofB, false):
		return MatchLines
	case al.tr.functionKey(ofA, true, false) == al.tr.functionKey(ofB, false, false):
		return MatchFunctions
	}
	return ""
}

// FunctionKey returns a text that frames have in common with all that can match
// them: the files and functions, without lines and folders.
func FunctionKey(frames []timeline.Frame) string {
	key := ""
	for _, f := range frames {
		if placed(f.Line, f.Filename) {
			key += fileName(f.Filename) + "\x00"
		}
		key += functionName(f.Name) + "\x01"
	}
	return key
}
