package trace

// FrameID names a frame, StackID a call stack in a Stacks table.
type (
	FrameID uint32
	StackID uint32
)

// NoStack stands for a stack that the file does not have; EmptyStack is one
// without frames.
const (
	NoStack    StackID = 0
	EmptyStack StackID = 1
)

// Frame is a place in a program.
type Frame struct {
	Name, File StringID
	Line       int64
	Extra      int32 // position in Stacks.Extra plus one; 0 for none
}

// Stacks keeps each frame and each call stack once. Make one with NewStacks.
type Stacks struct {
	Extra []Extra // further fields of frames, such as those of FX nodes

	frames   []Frame
	frameIDs map[Frame]FrameID
	flat     []FrameID // the frames of all stacks, innermost first
	ends     []uint32  // stack i is flat[ends[i-1]:ends[i]]
	stackIDs map[uint64][]StackID
}

// NewStacks returns a table that has NoStack and EmptyStack.
func NewStacks() *Stacks {
	return &Stacks{
		frameIDs: map[Frame]FrameID{},
		ends:     []uint32{0, 0},
		stackIDs: map[uint64][]StackID{},
	}
}

// AddFrame returns the id of a frame, adding it at first use.
func (s *Stacks) AddFrame(f Frame) FrameID {
	if id, ok := s.frameIDs[f]; ok {
		return id
	}
	id := FrameID(len(s.frames))
	s.frames = append(s.frames, f)
	s.frameIDs[f] = id
	return id
}

// Add returns the id of a stack, innermost frame first, adding it at first use.
func (s *Stacks) Add(frames []FrameID) StackID {
	if len(frames) == 0 {
		return EmptyStack
	}
	h := uint64(len(frames))
	for _, f := range frames {
		h = (h ^ uint64(f)) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	for _, id := range s.stackIDs[h] {
		if equal(s.Frames(id), frames) {
			return id
		}
	}
	id := StackID(len(s.ends))
	s.flat = append(s.flat, frames...)
	s.ends = append(s.ends, uint32(len(s.flat)))
	s.stackIDs[h] = append(s.stackIDs[h], id)
	return id
}

func equal(a, b []FrameID) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Frames returns the frames of a stack, innermost first. The slice belongs to
// the table.
func (s *Stacks) Frames(id StackID) []FrameID {
	if id <= EmptyStack {
		return nil
	}
	return s.flat[s.ends[id-1]:s.ends[id]]
}

// Frame returns the frame with the given id.
func (s *Stacks) Frame(id FrameID) Frame { return s.frames[id] }

// Len returns the number of stack ids in use; ids are below it.
func (s *Stacks) Len() int { return len(s.ends) }

// NumFrames returns the number of distinct frames.
func (s *Stacks) NumFrames() int { return len(s.frames) }
