package trace

import (
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
)

// Segment is memory obtained from the driver, as the file lists it.
type Segment struct {
	Address, TotalSize        uint64
	AllocatedSize, ActiveSize uint64
	RequestedSize             uint64
	Stream                    uint64
	Type                      string // "small" or "large"
	Pool                      alloc.PoolID
	HasPool                   bool // the file has the pool
	Expandable                bool
	Stack                     StackID
	Blocks                    []Block
	Extra                     Extra
}

// Block is a piece of a segment.
type Block struct {
	Address, Size uint64
	RequestedSize uint64
	State         alloc.BlockState // or OtherState
	Stack         StackID
	StateText     string // what the file calls State, if alloc has another name for it
	History       []Use  // PyTorch 2.0 lists who used the block instead of Stack
	Extra         Extra
}

// Use is an entry of a block's history in files of PyTorch 2.0.
type Use struct {
	Addr     uint64
	RealSize uint64
	Stack    StackID
	Extra    Extra
}

// OtherState is a state that alloc does not know.
const OtherState alloc.BlockState = math.MaxUint8

// SetState sets the state that a file calls name.
func (b *Block) SetState(name string) {
	state, ok := alloc.ParseBlockState(name)
	switch {
	case ok:
		b.State, b.StateText = state, ""
	case name == "active_awaiting_free": // older versions of PyTorch
		b.State, b.StateText = alloc.ActivePendingFree, name
	default:
		b.State, b.StateText = OtherState, name
	}
}

// StateName returns the block's state in the words of its file.
func (b *Block) StateName() string {
	if b.StateText != "" || b.State == OtherState {
		return b.StateText
	}
	return b.State.String()
}

// FromEngine returns a segment of an allocator as a file of PyTorch lists it.
// stacks has the stacks of blocks in use, by address, and may be nil.
func FromEngine(s *alloc.Segment, stacks map[uint64]StackID) Segment {
	out := Segment{
		Address: s.Address, TotalSize: s.TotalSize, AllocatedSize: s.AllocatedSize, ActiveSize: s.ActiveSize,
		RequestedSize: s.RequestedSize, Stream: s.Stream, Type: s.Type(), Pool: s.Pool, HasPool: true,
		Expandable: s.Expandable, Stack: EmptyStack, Blocks: make([]Block, len(s.Blocks)),
	}
	for i, b := range s.Blocks {
		block := Block{Address: b.Address, Size: b.Size, RequestedSize: b.RequestedSize, State: b.State, Stack: EmptyStack}
		if b.State != alloc.Inactive {
			block.Stack = max(stacks[b.Address], EmptyStack)
		}
		out.Blocks[i] = block
	}
	return out
}

// ToEngine returns the segment as an allocator of the device lists it. Blocks of
// another state than the allocator's are inactive there.
func (s *Segment) ToEngine(device int) alloc.Segment {
	out := alloc.Segment{
		Device: device, Address: s.Address, TotalSize: s.TotalSize,
		AllocatedSize: s.AllocatedSize, ActiveSize: s.ActiveSize, RequestedSize: s.RequestedSize,
		Stream: s.Stream, Large: s.Type == "large", Pool: s.Pool, Expandable: s.Expandable,
	}
	at := s.Address
	for _, b := range s.Blocks {
		block := alloc.Block{Address: b.Address, Size: b.Size, RequestedSize: b.RequestedSize, State: b.State}
		if block.Address == 0 {
			block.Address = at // old files lack it
		}
		at = block.Address + block.Size
		if block.State == OtherState {
			block.State = alloc.Inactive
		}
		out.Blocks = append(out.Blocks, block)
	}
	return out
}
