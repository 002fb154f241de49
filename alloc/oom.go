package alloc

import (
	"os"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// OutOfMemoryError is returned for a request that could not be served. Its text is
// the message of torch.OutOfMemoryError.
type OutOfMemoryError struct {
	Device    int
	Requested uint64 // bytes asked for
	Rounded   uint64 // size of the block that was looked for
	Segment   uint64 // size of the segment that was asked for; the "tried to allocate" of the message
	Stream    uint64
	Pool      PoolID
	TooLarge  bool // 2^60 bytes or more: refused without trying

	DeviceFree  uint64 // as the driver sees it
	DeviceTotal uint64
	Processes   []driver.Process // who holds memory on the device, if the driver knows

	Limited bool
	Limit   uint64

	Reserved      uint64 // obtained from the driver
	Allocated     uint64 // handed out
	PrivateCached uint64 // free blocks cached in private pools

	// Refusal is what the driver said to the last attempt; nil if that did not get to
	// ask it for memory, because of the limit for instance.
	Refusal error

	DriverError error // why the device could not be asked, if it could not
}

// Unwrap lets errors.Is find driver.ErrOutOfMemory.
func (e *OutOfMemoryError) Unwrap() error { return driver.ErrOutOfMemory }

const oomAdvice = " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" +
	" to avoid fragmentation.  See documentation for Memory Management " +
	" (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"

// Error returns the message in PyTorch's words (spec 13.1).
func (e *OutOfMemoryError) Error() string {
	if e.TooLarge {
		return e.Numbers()
	}
	return e.Numbers() + oomAdvice
}

// Numbers returns the part of the message that says what happened, without
// PyTorch's advice.
func (e *OutOfMemoryError) Numbers() string {
	if e.TooLarge {
		return "CUDA out of memory. Tried to allocate more than 1EB memory."
	}
	var m strings.Builder
	say := func(parts ...string) {
		for _, p := range parts {
			m.WriteString(p)
		}
	}
	say("CUDA out of memory. Tried to allocate ", units.Torch(e.Segment), ". GPU ", strconv.Itoa(e.Device),
		" has a total capacity of ", units.Torch(e.DeviceTotal), " of which ", units.Torch(e.DeviceFree), " is free. ")
	for _, p := range e.Processes {
		if p.Self {
			say("Including non-PyTorch memory, this process")
		} else {
			say("Process ", strconv.Itoa(p.PID))
		}
		say(" has ", units.Torch(p.Used), " memory in use. ")
	}
	if e.Limited {
		say(units.Torch(e.Limit), " allowed; ")
	}
	say("Of the allocated memory ", units.Torch(e.Allocated+e.PrivateCached), " is allocated by PyTorch, ")
	if e.PrivateCached > 0 {
		say("with ", units.Torch(e.PrivateCached), " allocated in private pools (e.g., CUDA Graphs), ")
	}
	say("and ", units.Torch(e.Reserved-e.Allocated-e.PrivateCached), " is reserved by PyTorch but unallocated.")
	return m.String()
}

// outOfMemory describes a request that cannot be served (spec 3.3).
func (a *Allocator) outOfMemory(r *request) error {
	e := &OutOfMemoryError{
		Device: a.device, Requested: r.size, Rounded: r.rounded, Segment: r.segment, Stream: r.stream,
		Limited: a.limited, Limit: a.limit, Reserved: a.reserved, Refusal: r.refusal,
	}
	if p := r.streamPool.pool.private; p != nil {
		e.Pool = p.id
	}
	e.DeviceFree, e.DeviceTotal, e.DriverError = a.dev.MemInfo()
	for k := range a.stats.kinds {
		e.Allocated += uint64(a.stats.kinds[k].current(statAllocatedBytes))
	}
	if a.elsewhere != 0 {
		e.Allocated -= a.liveElsewhere() // as Reserved, the message is about the device
	}
	for _, p := range a.private.byID {
		for _, q := range p.pools {
			for _, id := range q.freeBlocks(nil) {
				e.PrivateCached += a.blocks[id].size
			}
		}
	}
	if l, ok := a.dev.(driver.ProcessLister); ok {
		e.Processes, _ = l.Processes() // the message does without, as PyTorch's does
		for i := range e.Processes {
			e.Processes[i].Self = e.Processes[i].Self || e.Processes[i].PID == os.Getpid()
		}
	}
	return e
}
