package scenario

import "github.com/ashlar-mem/ashlar/alloc"

// Marks says how Step shows in the trace.
type Marks int

const (
	// Hidden steps leave no trace.
	Hidden Marks = iota
	// Annotated steps are ranges "ProfilerStep#n".
	Annotated
	// Metadata steps set the user_metadata of their events to "step n". An
	// event without frames stands for one of a thread that does not have it.
	Metadata
)

// Config describes the device, the allocator and the recording. The zero value
// is an idle device of 80 GiB, the default settings, no limit, hidden steps.
type Config struct {
	TotalMemory uint64 // of the device; 0 is 80 GiB
	Unusable    uint64 // held by the context and other processes
	Limit       uint64 // cap on reserved bytes; 0 is none
	Conf        string // PYTORCH_CUDA_ALLOC_CONF

	Steps Marks

	// MaxEntries is how many of the newest events the trace keeps; 0 keeps all.
	MaxEntries int
	// KeepGoing runs on after an allocation that failed.
	KeepGoing bool
	// Device is the number of the device.
	Device int
}

// Tick is how many microseconds a call takes.
const Tick = 10

// begin is the time of the first call.
const begin = 1_700_000_000_000_000

// PoolOptions are those of a MemPool.
type PoolOptions = alloc.MemPoolOptions
