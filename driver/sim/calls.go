package sim

import "time"

// Kind is a kind of driver call.
type Kind int

// The kinds of calls, one for each method of [driver.Driver] but TotalMemory, and of
// [driver.HostMapper].
const (
	Malloc Kind = iota
	Free
	Reserve
	Unreserve
	Map
	Unmap
	RecordEvent
	EventDone
	WaitEvent
	MemInfo
	CreatePhysical
	CreateHostPhysical
	MapPhysical
	SetAccess
	UnmapPhysical
	ReleasePhysical
	Synchronize
	CopyMapped
	SynchronizeDevice
	kinds
)

var kindNames = [kinds]string{
	"malloc", "free", "reserve", "unreserve", "map", "unmap",
	"record event", "event done", "wait event", "mem info",
	"create physical", "create host physical", "map physical", "set access", "unmap physical", "release physical",
	"synchronize", "copy mapped", "synchronize device",
}

func (k Kind) String() string { return kindNames[k] }

// Counts is a number of calls for each [Kind].
type Counts [kinds]int

// Total is the number of calls of all kinds.
func (c Counts) Total() int {
	total := 0
	for _, n := range c {
		total += n
	}
	return total
}

// Calls returns how often each kind of call was made, failed ones included.
func (d *Device) Calls() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// begin opens a driver call: it waits as set by Slow, counts, and fails if it
// is this call's turn to fail. The device is locked if it returns nil.
func (d *Device) begin(kind Kind) error {
	if delay := d.delays[kind].Load(); delay > 0 {
		time.Sleep(time.Duration(delay))
	}
	d.mu.Lock()
	d.calls[kind]++
	if err := d.faults.countCall(kind); err != nil {
		d.mu.Unlock()
		return err
	}
	return nil
}
