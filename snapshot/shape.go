package snapshot

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/pickle"
	"github.com/ashlar-mem/ashlar/trace"
)

// The tables that records name.
const (
	recEvent uint8 = iota + 1
	recFrame
	recStack
	recSegment
	recBlock
	recUse
	recAnnotation
	recPair
)

// shape is the sequence of keys of a dictionary, and what dictionaries of that
// sequence are. There are only a handful in a file.
type shape struct {
	keys []pickle.Value
	ids  []trace.StringID // keyNone for what is no known key of this kind, keySkip for one that comes again
	rec  uint8            // 0 if it is none of the known things
}

// keySkip stands for a key that comes again: the last one counts.
const keySkip = numKeys

// maxShapes bounds what a file with many different dictionaries costs.
const maxShapes = 64

// shapeOf returns the shape of a dictionary.
func (b *builder) shapeOf(pairs []pickle.Value) *shape {
	for i, s := range b.shapes {
		if !s.fits(pairs) {
			continue
		}
		if i > 0 { // the next one will be like it
			b.shapes[i] = b.shapes[i-1]
			b.shapes[i-1] = s
		}
		return s
	}
	s := newShape(pairs)
	if len(b.shapes) < maxShapes {
		b.shapes = append(b.shapes, s)
	}
	return s
}

func (s *shape) fits(pairs []pickle.Value) bool {
	if len(pairs) != 2*len(s.keys) {
		return false
	}
	for i, key := range s.keys {
		if pairs[2*i] != key {
			return false
		}
	}
	return true
}

// What makes a dictionary one of the known things, and its fields.
var kinds = []struct {
	rec    uint8
	needs  []trace.StringID
	fields []trace.StringID
}{
	{
		recEvent,
		[]trace.StringID{keyAction, keySize},
		[]trace.StringID{
			keyAction, keyAddr, keyDeviceFree, keySize, keyStream, keyTime, keyCompile, keyMeta, keyFrames, keyPoolID,
		},
	},
	{recFrame, []trace.StringID{keyName, keyFilename, keyLine}, []trace.StringID{keyName, keyFilename, keyLine}},
	{recBlock, []trace.StringID{keySize, keyState}, []trace.StringID{
		keyAddress, keySize, keyRequestedSize, keyState, keyFrames, keyHistory,
	}},
	{
		recSegment,
		[]trace.StringID{keyAddress, keyTotalSize, keyBlocks},
		[]trace.StringID{
			keyDevice, keyAddress, keyTotalSize, keyAllocatedSize, keyActiveSize, keyRequestedSize, keyStream,
			keySegmentType, keySegmentPoolID, keyExpandable, keyFrames, keyBlocks,
		},
	},
	{recAnnotation, []trace.StringID{keyStage, keyName}, []trace.StringID{keyStage, keyName, keyDevice, keyTime}},
	{recUse, []trace.StringID{keyAddr, keyRealSize}, []trace.StringID{keyAddr, keyRealSize, keyFrames}},
}

func newShape(pairs []pickle.Value) *shape {
	s := &shape{}
	var known []trace.StringID
	for i := 0; i < len(pairs); i += 2 {
		s.keys = append(s.keys, pairs[i])
		id := keyNone
		if n, ok := pairs[i].AsString(); ok {
			id = trace.StringID(n)
		}
		known = append(known, id)
	}
	if slices.Contains(known, keySegments) || slices.Contains(known, keyDeviceTraces) {
		return s // the snapshot itself, whatever else it has
	}
	for _, k := range kinds {
		if !subset(k.needs, known) {
			continue
		}
		s.rec = k.rec
		for i, id := range known {
			switch {
			case slices.Contains(s.keys[i+1:], s.keys[i]):
				id = keySkip
			case !slices.Contains(k.fields, id):
				id = keyNone
			}
			s.ids = append(s.ids, id)
		}
		break
	}
	return s
}

func subset(a, b []trace.StringID) bool {
	for _, id := range a {
		if !slices.Contains(b, id) {
			return false
		}
	}
	return true
}
