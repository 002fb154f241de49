package explain

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// async is for the backend cudaMallocAsync: the driver caches, and PyTorch
// does not know how much.
func (a *textEvidence) async() {
	if a.segment != nil {
		a.report.Evidence.Request, a.report.Evidence.Segment = &a.segment.Mid, nil
	}
	const who = "This is the backend cudaMallocAsync: the driver keeps the cache, and the message does not say how large it is"
	if a.live == nil || a.segment == nil {
		a.decide(Unknown, Open, "A request for memory failed. %s. Its numbers are missing here: paste the lines that follow.", who)
		return
	}
	need := a.live.Add(*a.segment)
	switch {
	case a.limit != nil && surelyMore(need, *a.limit):
		gap := need.Sub(*a.limit)
		a.needLine(a.segment.Mid, "", fmt.Sprintf("more than the limit of %s", units.Size(a.limit.Mid)))
		a.report.Capped = a.free != nil && surelyFits(*a.segment, *a.free)
		a.report.Evidence.Gap, a.report.Evidence.Available = &gap.Mid, &a.limit.Mid
		a.decide(Capacity, Certain, "%s failed with %s allocated: together %s, %s more than the limit of %s. No allocator setting helps%s.",
			a.asked(), units.Size(a.live.Mid), units.Size(need.Mid), units.Size(gap.Mid), units.Size(a.limit.Mid), a.deviceFreeText())
		a.lessFix(gap)
	case a.total == nil:
		a.decide(Unknown, Open, "%s failed with %s allocated. %s.", a.asked(), units.Size(a.live.Mid), who)
	case surelyMore(need, *a.total):
		gap := need.Sub(*a.total)
		a.needLine(a.segment.Mid, "", fmt.Sprintf("more than the device's %s", units.Size(a.total.Mid)))
		a.report.Evidence.Gap = &gap.Mid
		a.decide(Capacity, Certain, "%s failed with %s allocated: together %s, %s more than the device's %s. No allocator setting helps.",
			a.asked(), units.Size(a.live.Mid), units.Size(need.Mid), units.Size(gap.Mid), units.Size(a.total.Mid))
		a.lessFix(gap)
	default:
		a.asyncRest(need, who)
	}
}

// asyncRest is for a need below the size of the device.
func (a *textEvidence) asyncRest(need units.Range, who string) {
	a.needLine(a.segment.Mid, "", fmt.Sprintf("no more than the device's %s", units.Size(a.total.Mid)))
	rest := units.Range{}
	if a.free != nil {
		rest = a.total.Sub(a.free.Add(*a.live))
		a.line("%s", units.Sum([]units.Term{
			{Bytes: a.total.Mid, What: "on the device"}, {Bytes: a.free.Mid, Minus: true, What: "free"}, {Bytes: a.live.Mid, Minus: true, What: "allocated"},
		}, "in the driver's cache, in contexts and held by others"))
	}
	if withContext(need).Low > a.total.High {
		a.decide(Capacity, Likely, "%s failed with %s allocated: together %s of the device's %s, and a CUDA context takes up to %s of the rest. %s.",
			a.asked(), units.Size(a.live.Mid), units.Size(need.Mid), units.Size(a.total.Mid), units.Size(normalExternal), who)
		a.alternative(Fragmentation, "the driver's cache holds free memory in pieces that are too small")
		return
	}
	a.decide(External, Open, "%s failed with %s allocated: together %s, which fits on a device of %s. %s is neither free nor allocated: others hold it, or the driver's cache does, in pieces. %s.",
		a.asked(), units.Size(a.live.Mid), units.Size(need.Mid), units.Size(a.total.Mid), units.Size(rest.Mid), who)
	a.alternative(Fragmentation, "the driver's cache holds it: nvidia-smi shows whether there are other processes")
}

// metal is for Apple's devices: what PyTorch holds of the memory that the
// system lets it have. How much of it is in tensors the message does not say.
func (a *textEvidence) metal() {
	o := a.Message
	held, other, limit := o.AllocatedBytes, o.OtherBytes, o.LimitBytes
	a.live, a.report.Evidence.Live = nil, nil
	if a.segment != nil {
		a.report.Evidence.Request, a.report.Evidence.Segment = &a.segment.Mid, nil
	}
	if a.segment != nil && held == nil && other == nil && limit == nil {
		a.decide(Capacity, Certain, "A request for %s failed: it is larger than the largest buffer that Metal allows, whatever is free. One tensor is that large: attention without a fused kernel, or a whole data set at once.",
			units.Size(a.segment.Mid))
		return
	}
	if held == nil || other == nil || limit == nil || a.segment == nil {
		a.decide(Unknown, Open, "A request for memory failed on an Apple device. The parts of the message that would show why are missing.")
		return
	}
	a.reserved, a.report.Evidence.Reserved, a.report.Evidence.External = held, &held.Mid, &other.Mid
	sum := held.Add(*other).Add(*a.segment)
	a.line("%s; %s is allowed", units.Sum([]units.Term{
		{Bytes: held.Mid, What: "held by PyTorch"}, {Bytes: other.Mid, What: "of other allocations of the process"}, {Bytes: a.segment.Mid, What: "requested"},
	}, "then held"), units.Size(limit.Mid))
	there := limit.Sub(*other)
	a.report.Evidence.Available = &there.Mid
	a.line("%s", units.Sum([]units.Term{{Bytes: limit.Mid, What: "allowed"}, {Bytes: other.Mid, Minus: true, What: "of other allocations"}}, "for PyTorch"))
	if sum.Mid > limit.Mid {
		gap := sum.Mid - limit.Mid
		a.report.Evidence.Gap = &gap
	}
	asked := fmt.Sprintf("%s failed: PyTorch holds %s, and %s is left", a.asked(), units.Size(held.Mid), units.Size(limit.Sub(held.Add(*other)).Mid))
	alone := held.Add(*a.segment)
	switch {
	case surelyMore(*a.segment, *limit):
		a.decide(Capacity, Certain, "%s failed. It alone is more than the %s allowed.", a.asked(), units.Size(limit.Mid))
	case withContext(alone).High <= limit.Low:
		a.decide(External, Certain, "%s. It would fit within the %s allowed, but other allocations of this process (Metal, other libraries) hold %s.",
			asked, units.Size(limit.Mid), units.Size(other.Mid))
	default:
		a.decide(Capacity, Likely, "%s of the %s allowed. PyTorch had released its unused buffers before it gave up.", asked, units.Size(limit.Mid))
		a.alternative(Fragmentation, "much of what PyTorch holds is not allocated: compare torch.mps.current_allocated_memory() with torch.mps.driver_allocated_memory()")
	}
}

// libraryMeans says what a refusal of a library means.
var libraryMeans = map[string]string{
	"CUDA":       "The CUDA driver itself reports it, not PyTorch's allocator: a request that bypasses the allocator (a context, a CUDA graph, a kernel that needs local memory, another library), or page-locked host memory (pin_memory), which fails with the same words",
	"Level Zero": "Intel's driver (Level Zero) itself reports it, not PyTorch's allocator: it had no memory, or no other resource, for a buffer or a kernel",
	"HIP":        "The driver itself reports it, not PyTorch's allocator: a request that bypasses the allocator, or page-locked host memory (pin_memory), which fails with the same words",
	"cuBLAS":     "cuBLAS could not get memory for its handle or workspace, which it asks of the driver, not of PyTorch",
	"cuDNN":      "cuDNN could not get memory for its handle, which it asks of the driver, not of PyTorch",
	"cuSOLVER":   "cuSOLVER could not get memory, which it asks of the driver, not of PyTorch",
	"cuSPARSE":   "cuSPARSE could not get memory, which it asks of the driver, not of PyTorch",
	"cuFFT":      "cuFFT could not get memory for a plan, which it asks of the driver, not of PyTorch",
	"NCCL":       "NCCL could not get memory for its buffers, which it asks of the driver, not of PyTorch",
	"Triton":     "Triton could not load or start a kernel for want of memory, which it asks of the driver, not of PyTorch",
}

// fromLibrary is for requests that went past PyTorch's allocator.
func (a *textEvidence) fromLibrary() {
	o := a.Message
	if a.segment != nil {
		a.report.Evidence.Request, a.report.Evidence.Segment = &a.segment.Mid, nil
	}
	if a.segment != nil && a.total != nil && a.free != nil { // PyTorch 2.13's warning at each refusal
		a.refusalLine()
		if surelyMore(*a.segment, *a.total) {
			gap := a.segment.Sub(*a.total)
			a.report.Evidence.Gap, a.report.Evidence.Available = &gap.Mid, &a.total.Mid
			a.decide(Capacity, Certain, "The driver refused %s on a device of %s in all.", units.Size(a.segment.Mid), units.Size(a.total.Mid))
			return
		}
		a.decide(Unknown, Open, "The driver refused %s when %s of its %s was free. PyTorch may have served the request afterwards, from its cache or by releasing it: this line is a warning, not a failure.",
			units.Size(a.segment.Mid), units.Size(a.free.Mid), units.Size(a.total.Mid))
		return
	}
	asked := ""
	if a.segment != nil {
		asked = fmt.Sprintf(" %s was requested.", units.Size(a.segment.Mid))
	}
	a.decide(Unknown, Open, "%s.%s The text has no numbers that show why. PyTorch releases its cache for its own requests only, so this happens when PyTorch's cache, or others, hold the rest of the device.",
		libraryMeans[o.Library], asked)
	a.alternative(External, "other processes, or libraries, hold the device%s", a.lister())
	a.alternative(Fragmentation, "PyTorch's cache holds free memory: torch.cuda.memory_reserved() - torch.cuda.memory_allocated() shows how much; empty_cache() before the library's first call, or a limit by set_per_process_memory_fraction(), leaves room")
	a.alternative(Capacity, "tensors fill the device: torch.cuda.memory_allocated() shows it")
}
