package message

import (
	"errors"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// ErrCrowded is the error of [Parse] for a text with far more out-of-memory messages
// than a job writes.
var ErrCrowded = errors.New("very many out-of-memory messages: only the last ones are read")

// ErrNotFound is the error of [Parse] for a text without an out-of-memory message.
var ErrNotFound = errors.New(`no out-of-memory message found: looked for PyTorch's "CUDA out of memory. Tried to allocate ...", ` +
	`its parts ("total capacity", "is allocated by PyTorch"), cudaMallocAsync's "Allocation on device ... would exceed allowed memory", ` +
	`and "CUDA error: out of memory" or ALLOC_FAILED of CUDA, cuBLAS, cuDNN, NCCL and Triton; paste the whole error`)

// The values of [OOM.Backend]: PyTorch's caching allocator, its
// cudaMallocAsync backend, and requests that went past PyTorch to the driver.
const (
	Native          = "native"
	CUDAMallocAsync = "cudaMallocAsync"
	Driver          = "driver"
)

// OOM is one out-of-memory message. A size the message does not give is nil.
type OOM struct {
	// Version is a guess of the PyTorch version from the wording: "2.1",
	// "1.10-2.0", "2.11+", "up to 1.0"; empty if nothing shows it.
	Version string
	Backend string
	// Platform is what ran out: CUDA, HIP, XPU, NPU, MUSA, MPS.
	Platform string
	// Library is who asked, if it was not PyTorch's allocator: CUDA, cuBLAS,
	// cuDNN, cuSOLVER, cuSPARSE, cuFFT, NCCL, Triton.
	Library string
	// Exception is the Python type before the message, "torch.OutOfMemoryError".
	Exception string
	Device    int // -1 if the message does not say

	// TriedBytes is the size asked of the driver. From the native allocator
	// that is the segment, not the tensor (spec 13.1): any request up to 1 MiB
	// shows 2.00 MiB, one from there to 10 MiB shows 20.00 MiB, a larger one is
	// rounded up to 2 MiB. It is an upper bound of the tensor that failed. The
	// cudaMallocAsync backend gives the request itself.
	TriedBytes *units.Range
	TotalBytes *units.Range // the device's memory
	FreeBytes  *units.Range // free according to the driver

	// AllocatedBytes is what PyTorch calls allocated. From 2.4 on the native
	// message adds PrivatePoolBytes to it.
	AllocatedBytes *units.Range
	// ActiveBytes is allocated plus freed but not yet reusable; only NPU messages give it.
	ActiveBytes *units.Range
	// ReservedBytes is given by messages of 1.4 to 2.0, ReservedUnallocatedBytes
	// by those before ("cached") and after; [OOM.Reserved] computes either way.
	ReservedBytes            *units.Range
	ReservedUnallocatedBytes *units.Range
	// PrivatePoolBytes is the free memory cached in private pools; the message
	// calls it allocated, which it is not (spec 13.1).
	PrivatePoolBytes *units.Range
	// OtherBytes is what others than the allocator hold of the device; only
	// Apple's messages give it.
	OtherBytes *units.Range
	// LimitBytes is the process's limit; nil also if the message says there is none.
	LimitBytes *units.Range

	Processes []Process // in the message's order
	// Absurd are the phrases with a size that no PyTorch prints: from 1 EB on it
	// says so in words. A size beyond 64 bits is the largest number of these.
	Absurd []string
	Advice string // what the message tells the user to do, in one line

	// Traceback is Python's, innermost frame first; empty if none precedes the
	// message.
	Traceback []Frame

	// Cut says that the text ends before the message gives what is allocated.
	Cut bool

	Text string // the message as it stands in the input; of interleaved logs, with lines of others between
	Line int    // where it begins, from 1
	// What the launcher or the logger wrote before that line.
	Rank int // of the process, -1 if nothing says
	PID  int // 0 if nothing says
	Time time.Time
}

// Process is a process that holds memory on the device.
type Process struct {
	PID   int // 0 for the process itself: the message does not give it
	Bytes units.Range
	Self  bool
}

// Reserved is the memory PyTorch held from the driver: as given, or allocated
// plus unallocated. It is false if the message gives neither.
func (o *OOM) Reserved() (units.Range, bool) {
	switch {
	case o.ReservedBytes != nil:
		return *o.ReservedBytes, true
	case o.AllocatedBytes != nil && o.ReservedUnallocatedBytes != nil:
		return o.AllocatedBytes.Add(*o.ReservedUnallocatedBytes), true
	}
	return units.Range{}, false
}

// Unallocated is the part of the reserved memory that no tensor used and that
// no private pool kept, false if the message does not say.
func (o *OOM) Unallocated() (units.Range, bool) {
	switch {
	case o.ReservedUnallocatedBytes != nil:
		return *o.ReservedUnallocatedBytes, true
	case o.AllocatedBytes != nil && o.ReservedBytes != nil:
		return o.ReservedBytes.Sub(*o.AllocatedBytes), true
	}
	return units.Range{}, false
}
