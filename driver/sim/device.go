package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// ErrMisuse is wrapped by the error of every call that a correct engine does
// not make.
var ErrMisuse = errors.New("misuse of the device")

// ErrInvalidArgument is wrapped by the error of a call that a real driver
// refuses too, and that PyTorch's engine makes nevertheless: mapping with a
// granule that is no multiple of 2 MiB (spec 6.1).
var ErrInvalidArgument = errors.New("invalid argument")

// page is the unit in which physical memory is handed out (spec 14 item 29).
const page = 2 << 20

// Config describes a device. The zero value is an idle one with 80 GiB.
type Config struct {
	// TotalMemory is the size of the device; 0 is 80 GiB.
	TotalMemory uint64
	// HostMemory is how much of the host's memory can be had for the device; 0 is as
	// much as TotalMemory.
	HostMemory uint64
	// Unusable is what the context and other processes hold of it.
	Unusable uint64
	// Endless lets the device hand out more than it has.
	Endless bool
	// Wide gives the process addresses of 57 bits, where 47 are usual.
	Wide bool
	// Follow holds what a recording shows of plain segments. As long as the
	// requests are the same, so are the addresses; from the first other request
	// on they come from the model.
	Follow []Placement
	// Started is for programs of which the allocator is a part: the process has
	// run a kernel, and addresses begin as they do there. Without it nothing has
	// been done but to make a context.
	Started bool
	// Mirrored turns the order of plain segments' addresses round: what would lie
	// higher lies lower. It shows what of a result hangs on where a driver puts
	// segments. It is for programs that adopt nothing.
	Mirrored bool
	// Events says when events are done.
	Events EventMode
	// Clock tells the program's time in microseconds, where it is known: a call of the
	// driver takes longer after a pause. Without it calls cost what they do one after
	// the other.
	Clock func() (us int64, known bool)
	// Processes is what [Device.Processes] reports.
	Processes []driver.Process
}

// Device is a simulated GPU. It is safe for concurrent use.
type Device struct {
	total     uint64
	usable    uint64
	endless   bool
	mirrored  bool
	processes []driver.Process
	delays    [kinds]atomic.Int64 // see Slow

	mu       sync.Mutex
	held     uint64 // physical bytes, plain and mapped
	host     hostMemory
	handles  handles
	segments addressSpace
	ranges   reservations
	events   events
	calls    Counts
	faults   faults
	follow   []Placement
	clock    func() (us int64, known bool)
	pauses   pauses
	cost     time.Duration
}

var (
	_ driver.Driver        = (*Device)(nil)
	_ driver.ProcessLister = (*Device)(nil)
	_ driver.HostMapper    = (*Device)(nil)
)

// New makes a device.
func New(c Config) *Device {
	total := cmp.Or(c.TotalMemory, 80<<30)
	d := &Device{
		total:     total,
		usable:    total - min(c.Unusable, total),
		processes: slices.Clone(c.Processes),
		segments:  newAddressSpace(),
		ranges:    reservations{wide: c.Wide},
		events:    newEvents(c.Events),
		faults:    newFaults(),
		host:      hostMemory{total: cmp.Or(c.HostMemory, total)},
		handles:   handles{byID: map[driver.Physical]*handle{}},
		endless:   c.Endless,
		mirrored:  c.Mirrored,
		follow:    c.Follow,
		clock:     c.Clock,
	}
	d.segments.started = c.Started
	return d
}

// TotalMemory is the size of the device.
func (d *Device) TotalMemory() uint64 { return d.total }

// Processes returns the list of the configuration.
func (d *Device) Processes() ([]driver.Process, error) { return slices.Clone(d.processes), nil }

// Held returns the physical memory of the device that was taken and not given back.
func (d *Device) Held() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// SetUsable changes how much memory can be handed out in all, from now on: what
// other processes hold changes while a program runs.
func (d *Device) SetUsable(bytes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.usable, d.endless = bytes, false
}

// MemInfo reports free and total memory.
func (d *Device) MemInfo() (free, total uint64, err error) {
	if err := d.begin(MemInfo); err != nil {
		return 0, 0, err
	}
	defer d.mu.Unlock()
	return d.usable - min(d.held, d.usable), d.total, nil
}

// Malloc takes size bytes rounded up to 2 MiB of physical memory.
func (d *Device) Malloc(size, stream uint64) (addr uint64, err error) {
	if err := d.begin(Malloc); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if size == 0 {
		return 0, misuse("malloc of 0 bytes")
	}
	if err := d.fits(Malloc, size); err != nil {
		return 0, err
	}
	addr, ok := d.followMalloc(size)
	if !ok {
		addr, ok = d.segments.take(size)
	}
	if !ok {
		return 0, fmt.Errorf("sim: %w: no addresses for a malloc of %s", driver.ErrOutOfMemory, units.Size(size))
	}
	d.held += roundUp(size, page)
	d.cost += d.pauses.call(d.clock, MallocTime(size))
	return d.mirror(addr, size), nil
}

// mirror turns the address of a segment into the one that is handed out, and
// back.
func (d *Device) mirror(addr, size uint64) uint64 {
	if d.mirrored {
		return segmentsBase + segmentsTop - addr - roundUp(size, page)
	}
	return addr
}

// Free gives a segment back and completes the work of all streams.
func (d *Device) Free(addr, size uint64) error {
	if err := d.begin(Free); err != nil {
		return err
	}
	defer d.mu.Unlock()
	addr = d.mirror(addr, size)
	if got, ok := d.segments.size(addr); !ok {
		return misuse("free of %#x, where no segment begins", addr)
	} else if got != size {
		return misuse("free of %#x with %d bytes, it has %d", addr, size, got)
	}
	d.followFree(addr)
	d.segments.giveBack(addr)
	d.cost += d.pauses.call(d.clock, FreeTime(size))
	d.held -= roundUp(size, page)
	d.events.completeAll()
	return nil
}

// fits checks that size bytes of physical memory can be had.
func (d *Device) fits(kind Kind, size uint64) error {
	if size > d.faults.above {
		return fmt.Errorf("sim: %w: %v of %s, above %s it is made to fail", driver.ErrOutOfMemory, kind, units.Size(size), units.Size(d.faults.above))
	}
	if d.endless {
		return nil
	}
	free := d.usable - min(d.held, d.usable)
	if size > free || roundUp(size, page) > free {
		return fmt.Errorf("sim: %w: %v of %s with %s free", driver.ErrOutOfMemory, kind, units.Size(size), units.Size(free))
	}
	return nil
}

func misuse(format string, args ...any) error {
	return fmt.Errorf("sim: %w: %s", ErrMisuse, fmt.Sprintf(format, args...))
}

// roundUp rounds n up to a multiple of the power of two unit. n is far from
// the end of 64 bits.
func roundUp(n, unit uint64) uint64 { return (n + unit - 1) &^ (unit - 1) }
