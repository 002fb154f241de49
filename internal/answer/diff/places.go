package diff

import (
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Listing is what is known of the source files of a program: the frames of its
// call stacks.
type Listing struct{ side Side }

// Listing brings frames into the table. The order does not matter.
func (x *Table) Listing(frames []timeline.Frame) *Listing {
	x.sources++
	return &Listing{Side{frames: x.frameIDs(frames), source: x.sources}}
}

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

// Alignment tells which lines of a program are which of another version of it.
type Alignment struct{ tr *translation }

// Align aligns two listings, as [Table.Compare] does it for two sides.
func (x *Table) Align(a, b *Listing) *Alignment {
	return &Alignment{x.translation(&a.side, &b.side)}
}

// Match says how frames of the first listing are the same as frames of the
// second: [MatchExact], [MatchLines], [MatchFunctions], or "" if they are not.
func (al *Alignment) Match(a, b []timeline.Frame) string {
	ofA, ofB := al.tr.table.frameIDs(a), al.tr.table.frameIDs(b)
	switch {
	case al.tr.lineKey(ofA, true) == al.tr.lineKey(ofB, false):
		for i := range ofA {
			if ofA[i] != ofB[i] {
				return MatchLines
			}
		}
		return MatchExact
	case !al.tr.identity && al.tr.functionKey(ofA, true, false) == al.tr.functionKey(ofB, false, false):
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
