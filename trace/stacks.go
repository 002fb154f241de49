package trace

import "slices"

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

	flat   [][]FrameID // the frames of all stacks, innermost first, each stack's in one piece
	stacks []stackRef
	slots  []slot // a hash table of stacks, at most half full
}

// stackRef is where the frames of a stack are.
type stackRef struct{ chunk, at, n uint32 }

// slot holds a stack and the upper half of its hash; the zero slot is free.
type slot struct {
	hash uint32
	id   StackID
}

// flatLen is the number of frames that are allocated at a time.
const flatLen = 1 << 15

// NewStacks returns a table that has NoStack and EmptyStack.
func NewStacks() *Stacks {
	return &Stacks{
		frameIDs: map[Frame]FrameID{},
		stacks:   make([]stackRef, 2),
		slots:    make([]slot, 1<<8),
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
	h := hash(frames)
	mask := uint64(len(s.slots) - 1)
	i := h & mask
	for ; s.slots[i].id != 0; i = (i + 1) & mask {
		if s.slots[i].hash == uint32(h>>32) && slices.Equal(s.Frames(s.slots[i].id), frames) {
			return s.slots[i].id
		}
	}
	id := StackID(len(s.stacks))
	s.stacks = append(s.stacks, s.store(frames))
	s.slots[i] = slot{uint32(h >> 32), id}
	if 2*len(s.stacks) > len(s.slots) {
		s.rehash()
	}
	return id
}

// store copies the frames of a stack.
func (s *Stacks) store(frames []FrameID) stackRef {
	last := len(s.flat) - 1
	if last < 0 || cap(s.flat[last])-len(s.flat[last]) < len(frames) {
		s.flat = append(s.flat, make([]FrameID, 0, max(flatLen, len(frames))))
		last++
	}
	at := len(s.flat[last])
	s.flat[last] = append(s.flat[last], frames...)
	return stackRef{uint32(last), uint32(at), uint32(len(frames))}
}

// rehash doubles the hash table.
func (s *Stacks) rehash() {
	s.slots = make([]slot, 2*len(s.slots))
	mask := uint64(len(s.slots) - 1)
	for id := int(EmptyStack) + 1; id < len(s.stacks); id++ {
		h := hash(s.Frames(StackID(id)))
		i := h & mask
		for s.slots[i].id != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = slot{uint32(h >> 32), StackID(id)}
	}
}

// hash mixes two frames at a time; the multiplier is the golden ratio's.
func hash(frames []FrameID) uint64 {
	const k = 0x9E3779B97F4A7C15
	h := uint64(len(frames)) * k
	for len(frames) >= 2 {
		h = (h ^ (uint64(frames[0])<<32 | uint64(frames[1]))) * k
		h ^= h >> 32
		frames = frames[2:]
	}
	if len(frames) > 0 {
		h = (h ^ uint64(frames[0])) * k
		h ^= h >> 32
	}
	return h * k
}

// Frames returns the frames of a stack, innermost first. The slice belongs to
// the table.
func (s *Stacks) Frames(id StackID) []FrameID {
	ref := s.stacks[id]
	if ref.n == 0 {
		return nil
	}
	return s.flat[ref.chunk][ref.at : ref.at+ref.n : ref.at+ref.n]
}

// Frame returns the frame with the given id.
func (s *Stacks) Frame(id FrameID) Frame { return s.frames[id] }

// Len returns the number of stack ids in use; ids are below it.
func (s *Stacks) Len() int { return len(s.stacks) }

// NumFrames returns the number of distinct frames.
func (s *Stacks) NumFrames() int { return len(s.frames) }
