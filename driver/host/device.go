package host

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
)

// ErrMisuse is wrapped by the error of every call that a correct program does
// not make.
var ErrMisuse = errors.New("misuse of the device")

// ErrClosed is what every call returns after Close.
var ErrClosed = errors.New("host: the device is closed")

// page is the unit in which memory is handed out and mapped, that of a GPU.
const page = 2 << 20

// Config describes a device.
type Config struct {
	// Memory is what the device has; 0 is 1 GiB. Only what is touched is taken
	// from the machine.
	Memory uint64
	// HostMemory is what can be mapped beside that, as memory of the host; 0 is as much.
	HostMemory uint64
}

// Device is a device in host memory. It is safe for concurrent use.
type Device struct {
	total   uint64
	workers sync.WaitGroup // the goroutines of streams
	taking  sync.WaitGroup // calls that wait for work before they take memory away

	mu         sync.Mutex
	closed     bool
	held       uint64 // bytes, plain and mapped
	physical   physicalMemory
	spaces     []*space
	streams    map[uint64]*stream
	nextStream uint64
	events     map[driver.Event]*event
	nextEvent  driver.Event
	pinned     map[*byte]int // host memory, by its first byte
	unseen     []error       // of streams that have ended
}

var (
	_ driver.Copier     = (*Device)(nil)
	_ driver.HostMapper = (*Device)(nil)
)

// New makes a device with stream 0.
func New(c Config) *Device {
	d := &Device{
		total:   cmp.Or(c.Memory, 1<<30),
		streams: map[uint64]*stream{},
		events:  map[driver.Event]*event{},
		pinned:  map[*byte]int{},
	}
	d.physical.hostTotal = cmp.Or(c.HostMemory, d.total)
	d.startStream()
	return d
}

// Close waits for all work, ends all goroutines and gives all memory back. It
// reports what went wrong in the work that nobody synchronized with. Closing
// again does nothing.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	for _, s := range d.streams {
		s.end(false)
	}
	d.mu.Unlock()
	d.workers.Wait()
	d.taking.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	failed := d.unseen
	for _, s := range d.spaces {
		failed = append(failed, unmapPages(s.mem))
	}
	failed = append(failed, d.physical.close())
	d.spaces, d.held, d.unseen = nil, 0, nil
	clear(d.events)
	clear(d.pinned)
	return errors.Join(failed...)
}

// TotalMemory is the size of the device.
func (d *Device) TotalMemory() uint64 { return d.total }

// MemInfo reports free and total memory.
func (d *Device) MemInfo() (free, total uint64, err error) {
	if err := d.begin(); err != nil {
		return 0, 0, err
	}
	defer d.mu.Unlock()
	return d.total - d.held, d.total, nil
}

// Held returns the device's memory that was taken and not given back.
func (d *Device) Held() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held
}

// begin locks the device if it is open.
func (d *Device) begin() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return ErrClosed
	}
	return nil
}

func misuse(format string, args ...any) error {
	return fmt.Errorf("host: %w: %s", ErrMisuse, fmt.Sprintf(format, args...))
}

// roundUp rounds n up to a multiple of the power of two unit. n is far from
// the end of 64 bits.
func roundUp(n, unit uint64) uint64 { return (n + unit - 1) &^ (unit - 1) }
