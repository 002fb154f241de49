package alloc

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// BlockState is the state of a block in a snapshot.
type BlockState uint8

// The states of blocks in a snapshot.
const (
	Inactive          BlockState = iota // free
	ActiveAllocated                     // handed out
	ActivePendingFree                   // freed, waiting for other streams
)

func (s BlockState) String() string {
	switch s {
	case Inactive:
		return "inactive"
	case ActiveAllocated:
		return "active_allocated"
	case ActivePendingFree:
		return "active_pending_free"
	}
	return fmt.Sprintf("BlockState(%d)", uint8(s))
}

// ParseBlockState finds the state with the given name.
func ParseBlockState(name string) (BlockState, bool) {
	for s := Inactive; s <= ActivePendingFree; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// Block is a piece of a segment.
type Block struct {
	Address       uint64
	Size          uint64
	RequestedSize uint64 // in an inactive block that of its last use
	State         BlockState
}

// Segment is memory obtained from the driver. Each mapped run of an expandable
// segment is listed as a Segment.
type Segment struct {
	Device        int
	Address       uint64
	TotalSize     uint64
	AllocatedSize uint64 // blocks handed out
	ActiveSize    uint64 // and those waiting for other streams
	RequestedSize uint64 // bytes asked for in active blocks
	Stream        uint64
	Large         bool
	Pool          PoolID
	Expandable    bool
	Lost          bool // PyTorch has deleted its pool and does not list it any more (spec 14 item 9)
	Blocks        []Block
}

// Type is "small" or "large".
func (s *Segment) Type() string {
	if s.Large {
		return "large"
	}
	return "small"
}

// Snapshot is the state of an allocator at one moment, with its trace.
type Snapshot struct {
	Device   int
	Segments []Segment
	Events   []Event
	Settings settings.Settings
	Version  pytorch.Version // of PyTorch, whose rules the allocator follows; 0 is [pytorch.Default]
}

// Snapshot copies the allocator's state and records that it did: the event
// shows up in later snapshots (spec 10.3).
func (a *Allocator) Snapshot() Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.recall(true) // what cannot be freed is shown as it is
	s := Snapshot{Device: a.device, Segments: a.segmentList(), Events: a.history.events(), Settings: a.cfg, Version: a.version}
	var active uint64
	for i := range s.Segments {
		active += s.Segments[i].ActiveSize
	}
	a.emit(ActionSnapshot, 0, active, a.streamPoolFor(a.pools[small], 0))
	return s
}

// Segments lists the segments by address.
func (a *Allocator) Segments() []Segment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.segmentList()
}

func (a *Allocator) segmentList() []Segment {
	n := 0
	for i := range a.segments {
		if a.segments[i].size != 0 {
			n++
		}
	}
	out := slices.Grow([]Segment(nil), n)
	for i := range a.segments {
		if a.segments[i].size != 0 {
			out = a.appendRuns(out, &a.segments[i])
		}
	}
	slices.SortFunc(out, func(x, y Segment) int { return cmp.Compare(x.Address, y.Address) })
	return out
}

// appendRuns lists each run of mapped blocks of a segment.
func (a *Allocator) appendRuns(out []Segment, s *segment) []Segment {
	sp := a.streamPools[s.streamPool]
	var run *Segment
	for id := s.head; id != noBlock; id = a.blocks[id].next {
		b := &a.blocks[id]
		if b.state == stateUnmapped {
			run = nil
			continue
		}
		if run == nil {
			out = append(out, Segment{
				Device: a.device, Address: b.addr, Stream: sp.stream,
				Large: sp.pool.kind == large, Expandable: s.expandable(),
			})
			run = &out[len(out)-1]
			if p := sp.pool.private; p != nil {
				run.Pool = p.id
				// PyTorch finds a segment through its first block, if
				// that is active or in the free set of a pool it has.
				run.Lost = p.orphan && b.state == stateFree
			}
		}
		run.add(b)
	}
	return out
}

func (s *Segment) add(b *block) {
	state := Inactive
	switch b.state {
	case stateAllocated:
		state = ActiveAllocated
		s.AllocatedSize += b.size
	case statePending:
		state = ActivePendingFree
	}
	s.TotalSize += b.size
	if state != Inactive {
		s.ActiveSize += b.size
		s.RequestedSize += b.requested
	}
	s.Blocks = append(s.Blocks, Block{Address: b.addr, Size: b.size, RequestedSize: b.requested, State: state})
}
