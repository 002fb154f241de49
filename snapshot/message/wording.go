package message

import (
	"math"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// wording is one phrase that a message is made of.
type wording struct {
	pattern string
	backend string
	opens   bool // a message may begin with it
	next    bool // nothing may stand before it
	last    bool // nothing may follow it on its line
	// set takes what was found. It returns false if the message has this
	// already: the phrase belongs to the next one.
	set func(*OOM, found) bool

	parts []part
}

// wordings are all the phrases. Patterns are in lower case.
var wordings = prepare([]wording{
	platform("cuda", "CUDA"), platform("hip", "HIP"), platform("xpu", "XPU"), platform("npu", "NPU"),
	platform("musa", "MUSA"), platform("dpcpp", "XPU"), platform("mps backend", "MPS"),
	// Intel's extension, where the driver has no larger blocks.
	opening("current platform can not allocate memory block with size larger than 4gb!", "XPU"),
	// PyTorch asks NVML who holds the memory when it writes the message; where NVML
	// does not answer (Jetson, MIG, containers), this is all that is printed.
	opening("nvml_success == r internal assert failed", "CUDA"),
	opening("nvml_success == driverapi::get()->nvmlinit_v2_() internal assert failed", "CUDA"),
	// A tensor larger than Metal's largest buffer.
	{pattern: "invalid buffer size: %s", backend: Native, opens: true, set: metalBuffer},

	{pattern: "tried to allocate %s", backend: Native, opens: true, set: into(tried)},
	{pattern: "tried to allocate more than 1eb memory", backend: Native, opens: true, set: func(o *OOM, _ found) bool {
		o.TriedBytes = &units.Range{Low: 1 << 60, Mid: 1 << 60, High: math.MaxUint64}
		return true
	}},

	// 2.1 on; 2.1 itself has the slip.
	{pattern: "gpu %n has a total capacity of %s", backend: Native, opens: true, set: onDevice(total)},
	{pattern: "gpu %n has a total capacty of %s", backend: Native, opens: true, set: onDevice(total)},
	{pattern: ". gpu %n has a total capacity of %s", backend: Native, set: onDevice(total)},
	{pattern: ". gpu %n has a total capacty of %s", backend: Native, set: onDevice(total)},
	{pattern: "of which %s is free", backend: Native, set: into(free)},
	{pattern: "this process has %s memory in use", backend: Native, set: func(o *OOM, f found) bool {
		o.Processes = append(o.Processes, Process{Bytes: f.sizes[0], Self: true})
		return true
	}},
	{pattern: "process %d has %s memory in use", backend: Native, set: func(o *OOM, f found) bool {
		o.Processes = append(o.Processes, Process{PID: int(f.numbers[0]), Bytes: f.sizes[0]})
		return true
	}},
	{pattern: "%s allowed;", backend: Native, set: into(limit)},
	{pattern: "of the allocated memory %s is allocated by pytorch", backend: Native, opens: true, set: into(allocated)},
	{pattern: "with %s allocated in private pools", backend: Native, set: into(privatePool)},
	{pattern: "%s is reserved by pytorch but unallocated", backend: Native, set: into(unallocated)},
	// 2.3 printed the device as a character, and device 0 ended the text.
	{pattern: ". gpu", backend: Native, next: true, last: true, set: func(o *OOM, _ found) bool { return device0(o) }},

	// 2.12 on, with throw_on_cudamalloc_oom: an error, and before it a warning with
	// the numbers. What it calls allocated is what PyTorch holds from the driver.
	{pattern: "allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. requested size: %s", backend: Native, opens: true, set: into(tried)},
	{pattern: "preemptively rejecting allocation: requested %s but total_allocated_memory (%s) + requested size would exceed memory limit (%s = %f%% of %s)", backend: Native, opens: true, set: rejecting},

	// 1.0 to 2.0.
	{pattern: "(gpu %d; %s total capacity", backend: Native, opens: true, set: onDevice(total)},
	{pattern: "(npu %d; %s total capacity", backend: Native, opens: true, set: onDevice(total)},
	{pattern: "%s already allocated", backend: Native, set: into(allocated)},
	{pattern: "%s current active", backend: Native, set: into(active)},
	{pattern: "%s free;", backend: Native, set: into(free)},
	{pattern: "%s reserved in total by pytorch", backend: Native, set: into(reserved)},
	{pattern: "%s cached", backend: Native, set: into(unallocated)},

	// Apple's.
	{pattern: "mps allocated: %s", backend: Native, set: into(allocated)},
	{pattern: "other allocations: %s", backend: Native, set: into(other)},
	{pattern: "max allowed: %s", backend: Native, set: into(limit)},

	{pattern: "allocation on device %n would exceed allowed memory", backend: CUDAMallocAsync, opens: true, set: asyncHead},
	{pattern: "allocation on device", backend: CUDAMallocAsync, opens: true, last: true, set: func(o *OOM, f found) bool {
		return asyncHead(o, f) && device0(o)
	}},
	{pattern: "currently allocated: %s", backend: CUDAMallocAsync, set: into(allocated)},
	{pattern: "requested: %s", backend: CUDAMallocAsync, set: into(tried)},
	{pattern: "device limit: %s", backend: CUDAMallocAsync, set: into(total)},
	{pattern: "free (according to cuda): %s", backend: CUDAMallocAsync, set: into(free)},
	{pattern: "pytorch limit (set by user-supplied memory fraction): %s", backend: CUDAMallocAsync, set: into(limit)},

	library("CUDA", "cuda error: out of memory"), library("CUDA", "cuda driver error: out of memory"),
	library("CUDA", "cuda runtime error (2): out of memory"), library("CUDA", "cuda failed with error out of memory"),
	library("CUDA", "cuda failed with error 2 out of memory"), library("CUDA", "cuda_error_out_of_memory"),
	library("HIP", "hip error: out of memory"), library("HIP", "hiperroroutofmemory"),
	library("cuBLAS", "cublas_status_alloc_failed"), library("cuBLAS", "cuda error: cublas_status_alloc_failed"),
	library("cuDNN", "cudnn_status_alloc_failed"), library("cuDNN", "cudnn error: cudnn_status_alloc_failed"),
	library("cuSOLVER", "cusolver_status_alloc_failed"), library("cuSPARSE", "cusparse_status_alloc_failed"),
	library("cuFFT", "cufft_alloc_failed"), library("Triton", "triton error [cuda]: out of memory"),
	library("NCCL", "cuda failure 'out of memory'"), library("NCCL", "cuda failure 2 'out of memory'"),
	library("NCCL", "cuda failure \"out of memory\""),
	library("Level Zero", "ur_result_error_out_of_device_memory"), library("Level Zero", "ur_result_error_out_of_resources"),
	library("HIP", "hsa_status_error_out_of_resources"),
	{pattern: "failed to cuda calloc %d bytes", backend: Driver, opens: true, set: callocFailed},
	{pattern: "failed to cuda calloc async %d bytes", backend: Driver, opens: true, set: callocFailed},
	// 2.13 warns at each refusal, with all digits (spec 15).
	{pattern: "memory allocation failed with oom on device %d while trying to allocate %d bytes (free: %d, total: %d)", backend: Driver, opens: true, set: refused},
})

func prepare(all []wording) []wording {
	for i := range all {
		all[i].parts = compile(all[i].pattern)
	}
	return all
}

func platform(words, name string) wording { return opening(words+" out of memory", name) }

// opening is the first phrase of a message of the native allocator on a platform.
func opening(pattern, name string) wording {
	return wording{pattern: pattern, backend: Native, opens: true, set: func(o *OOM, _ found) bool {
		if o.Platform != "" || o.TriedBytes != nil {
			return false
		}
		o.Platform = name
		return true
	}}
}

func library(name, pattern string) wording {
	return wording{pattern: pattern, backend: Driver, opens: true, set: func(o *OOM, _ found) bool {
		if o.Library != "" {
			return false
		}
		o.Library = name
		return true
	}}
}

func tried(o *OOM) **units.Range       { return &o.TriedBytes }
func total(o *OOM) **units.Range       { return &o.TotalBytes }
func free(o *OOM) **units.Range        { return &o.FreeBytes }
func limit(o *OOM) **units.Range       { return &o.LimitBytes }
func allocated(o *OOM) **units.Range   { return &o.AllocatedBytes }
func active(o *OOM) **units.Range      { return &o.ActiveBytes }
func reserved(o *OOM) **units.Range    { return &o.ReservedBytes }
func unallocated(o *OOM) **units.Range { return &o.ReservedUnallocatedBytes }
func other(o *OOM) **units.Range       { return &o.OtherBytes }
func privatePool(o *OOM) **units.Range { return &o.PrivatePoolBytes }

// into returns a setter of one size.
func into(field func(*OOM) **units.Range) func(*OOM, found) bool {
	return func(o *OOM, f found) bool {
		p := field(o)
		if *p != nil {
			return false
		}
		*p = &f.sizes[0]
		return true
	}
}

func onDevice(field func(*OOM) **units.Range) func(*OOM, found) bool {
	set := into(field)
	return func(o *OOM, f found) bool {
		if !set(o, f) {
			return false
		}
		if len(f.numbers) > 0 {
			o.Device = int(f.numbers[0])
		}
		return true
	}
}

func device0(o *OOM) bool {
	o.Device = 0
	return true
}

func asyncHead(o *OOM, f found) bool {
	if o.Platform != "" {
		return false
	}
	o.Platform = "CUDA"
	if len(f.numbers) > 0 {
		o.Device = int(f.numbers[0])
	}
	return true
}

func metalBuffer(o *OOM, f found) bool {
	const smallest = 256 << 20 // of the largest buffers that Metal allows
	if o.TriedBytes != nil || o.Platform != "" || f.sizes[0].High < smallest {
		return false
	}
	o.Platform, o.TriedBytes = "MPS", &f.sizes[0]
	return true
}

func callocFailed(o *OOM, f found) bool {
	if o.TriedBytes != nil {
		return false
	}
	r := units.Exactly(f.numbers[0])
	o.TriedBytes, o.Library = &r, "NCCL"
	return true
}

func rejecting(o *OOM, f found) bool {
	if o.TriedBytes != nil || o.Platform != "" {
		return false
	}
	o.TriedBytes, o.ReservedBytes, o.LimitBytes, o.TotalBytes = &f.sizes[0], &f.sizes[1], &f.sizes[2], &f.sizes[3]
	return true
}

func refused(o *OOM, f found) bool {
	if o.TriedBytes != nil || o.Library != "" {
		return false
	}
	sizes := []units.Range{units.Exactly(f.numbers[1]), units.Exactly(f.numbers[2]), units.Exactly(f.numbers[3])}
	o.Library, o.Device = "CUDA", int(f.numbers[0])
	o.TriedBytes, o.FreeBytes, o.TotalBytes = &sizes[0], &sizes[1], &sizes[2]
	return true
}
