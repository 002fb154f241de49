package snapshot

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// The numbers of a file are checked here and in builder.size, so that what works
// with them can trust them: no sum of sizes wraps around, and segments end where
// addresses do. Files beyond these bounds are refused; those that are merely not
// true in all they say are read, and Contradictions lists why.

const (
	maxDevices = 1024
	maxSize    = 1 << 46 // of anything: more than any device has
	// maxReserved bounds all segments together; floating point is exact up to here.
	maxReserved = 1 << 53
	// maxPools bounds the pairs of stream and pool. Each has free blocks of its own
	// wherever the allocator is run. PyTorch itself makes 128 streams on a device.
	maxPools = 4096
)

// damaged is what to do about a file with numbers that cannot be.
const damaged = "the file is damaged, record it again"

// boundSegment refuses a segment that cannot be.
func (b *builder) boundSegment(s *segmentRow) error {
	switch {
	case s.device < 0 || s.device >= maxDevices:
		return fmt.Errorf("a segment on device %d: %s", s.device, damaged)
	case s.Address > math.MaxUint64-s.TotalSize:
		return fmt.Errorf("a segment of %d bytes at %#x goes beyond the last address: %s", s.TotalSize, s.Address, damaged)
	}
	if b.reserved += s.TotalSize; b.reserved > maxReserved {
		return fmt.Errorf("segments of more than %d bytes together: %s", int64(maxReserved), damaged)
	}
	return b.boundPools(s.Stream, s.Pool)
}

// streamPool is what has free blocks of its own.
type streamPool struct {
	stream uint64
	pool   alloc.PoolID
}

func (b *builder) boundPools(stream uint64, pool alloc.PoolID) error {
	if b.pools[streamPool{stream, pool}] = struct{}{}; len(b.pools) > maxPools {
		return errPools
	}
	return nil
}

var errPools = fmt.Errorf("more than %d streams and pools: %s", maxPools, damaged)

// boundEvent refuses an event that cannot be. Any size may fail to be allocated.
func (b *builder) boundEvent(e *trace.Event) error {
	at := &b.recent[(e.Stream^e.Stream>>6^uint64(e.Pool))%uint64(len(b.recent))]
	if now := (eventPool{e.Stream, e.Pool + 1}); *at != now {
		*at = now
		if err := b.boundPools(e.Stream, b.events.PoolID(e.Pool)); err != nil {
			return err
		}
	}
	if e.Action >= alloc.ActionOOM {
		return nil
	}
	if b.moved += e.Size; b.moved > math.MaxInt64 {
		return errMoved
	}
	return nil
}

// eventPool is the stream and the pool of an event, one added to the latter.
type eventPool struct {
	stream uint64
	pool   trace.PoolRef
}

var errMoved = errors.New("events of more than 2^63 bytes together: " + damaged)

// contradictions finds what a file says that cannot be true together. Each kind is
// told once, with its first case.
type contradictions struct {
	kinds []string
	first map[string]string
	count map[string]int
}

func (c *contradictions) add(kind, format string, args ...any) {
	if c.count[kind]++; c.count[kind] == 1 {
		c.kinds = append(c.kinds, kind)
		c.first[kind] = fmt.Sprintf(format, args...)
	}
}

// texts words what was found; nil if that is nothing.
func (c *contradictions) texts() []string {
	var all []string
	for _, kind := range c.kinds {
		all = append(all, fmt.Sprintf("%s (%d in all, the first %s)", kind, c.count[kind], c.first[kind]))
	}
	return all
}

// contradicting returns what the segments of a file's traces contradict.
func contradicting(traces []*trace.Trace) []string {
	c := &contradictions{first: map[string]string{}, count: map[string]int{}}
	for _, t := range traces {
		end := uint64(0)
		for i := range t.Segments {
			s := &t.Segments[i]
			if s.Address < end {
				c.add("segments overlap", "at %#x", s.Address)
			}
			end = max(end, s.Address+s.TotalSize)
			c.segment(s, t.Host)
		}
	}
	return c.texts()
}

// segment compares a segment with its blocks, which lie one behind the other and
// fill it.
func (c *contradictions) segment(s *trace.Segment, host bool) {
	at, allocated, active := s.Address, uint64(0), uint64(0)
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if b.Address != at {
			c.add("blocks do not lie one behind the other", "at %#x instead of %#x", b.Address, at)
		}
		at = b.Address + b.Size
		switch b.State {
		case alloc.ActiveAllocated:
			allocated += b.Size
			active += b.Size
			if b.RequestedSize > b.Size {
				c.add("blocks are smaller than what was requested", "of %d bytes for %d", b.Size, b.RequestedSize)
			}
		case alloc.ActivePendingFree:
			active += b.Size
		}
		if !host && (b.Address|b.Size)%alloc.MinBlock != 0 {
			c.add("blocks are not aligned", "of %d bytes at %#x", b.Size, b.Address)
		}
	}
	if at != s.Address+s.TotalSize {
		c.add("blocks do not add up to their segment", "has %d bytes of %d", at-s.Address, s.TotalSize)
	}
	if slices.ContainsFunc(s.Blocks, func(b trace.Block) bool { return b.State == trace.OtherState }) {
		return // who knows what counts
	}
	if s.AllocatedSize != allocated {
		c.add("segments have another allocated_size than their blocks", "%d instead of %d", s.AllocatedSize, allocated)
	}
	if s.ActiveSize != active {
		c.add("segments have another active_size than their blocks", "%d instead of %d", s.ActiveSize, active)
	}
}
