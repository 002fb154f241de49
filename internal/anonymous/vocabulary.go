package anonymous

import "regexp"

// The words that rules of other packages go by. A test holds the rules against
// frames with and without names, so a word that is missing here is found.

// functions keep their names wherever they are.
var functions = set(
	"<module>", "_call_impl", "_wrapped_call_impl", "decorate_context", "__torch_dispatch__", "__call__", "_fn", "inner",
	"forward", "backward", "grad", "apply", "_apply", "convert", "zero_grad", "_make_grads", "_engine_run_backward",
	"unpack_hook", "recompute_fn", "log_softmax", "_conv_forward",
	"benchmark_choice", "benchmark_choices", "benchmark_choice_in_current_process", "benchmark_in_current_process",
)

// torchFiles are kept, by their paths below torch.
var torchFiles = set(
	"_compile.py", "_inductor/autotune_process.py", "_ops.py", "_tensor.py", "autograd/__init__.py", "autograd/function.py",
	"autograd/graph.py", "nn/modules/module.py", "optim/optimizer.py", "utils/checkpoint.py",
)

var (
	// torchFolders keep their names, the files in them do not.
	torchFolders = []string{"optim/", "_dynamo/"}
	// otherFiles are ends of paths outside torch that are kept.
	otherFiles = []string{"accelerate/utils/memory.py", "/tuner/batch_size_scaling.py"}
	// anyParts are parts of names of functions that are kept, whatever their case.
	anyParts = []string{"cross_entropy", "loss"}
	// nativeParts are the same in compiled code; nativeStarts are beginnings.
	nativeParts  = []string{"convolution", "cudnn", "workspace"}
	nativeStarts = []string{
		"c10::cuda::CUDACachingAllocator", "torch::autograd::Engine::", "torch::autograd::python::PythonEngine::",
		"torch::CapturedTraceback", "torch::cuda::(anonymous namespace)::gather", "torch::unwind",
	}
	// endings of files are kept; those of compiled code have no lines to show.
	endings = []string{".py", ".cpp", ".cc", ".c", ".cu", ".h", ".hpp", ".cuh"}
)

// addressed is what PyTorch itself writes behind user_metadata.
const addressed = "mallocWithAddress"

var (
	optimizerRange = regexp.MustCompile(`^Optimizer\.(step|zero_grad)#`)
	profilerRange  = regexp.MustCompile(`^ProfilerStep#[0-9]*`)
	compileContext = regexp.MustCompile(`^(N/A|[0-9/_]*)$`)
	number         = regexp.MustCompile(`[0-9]+`)
	versionText    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\+(cu[0-9]+|rocm[0-9.]+|cpu))?`)
	deviceName     = regexp.MustCompile(`^(NVIDIA|Tesla|GeForce|Quadro|AMD|Intel)\b[A-Za-z0-9 ._()-]*$`)
	settingValue   = regexp.MustCompile(`^([0-9.]+|[Tt]rue|[Ff]alse|native|cudaMallocAsync|\[[0-9a-z:>,]*\])$`)
)

// settingKeys are what a settings text may set, in any version.
var settingKeys = set(
	"backend", "expandable_segments", "expandable_segments_reserve", "expandable_segments_reserve_by_class", "garbage_collection_threshold",
	"graph_capture_record_stream_reuse", "large_segment_size_mb", "max_non_split_rounding_mb", "max_split_size_mb", "per_process_memory_fraction",
	"pinned_free_catch_all", "pinned_num_register_threads", "pinned_reserve_segment_size_mb", "pinned_use_background_threads",
	"pinned_use_cuda_host_register", "pinned_use_hip_host_register", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc",
	"roundup_power2_divisions", "throw_on_cudamalloc_oom",
)

// settingFields are what a file's allocator_settings have under other names.
var settingFields = set(
	"ashlar_dropped_bytes", "ashlar_host_bytes", "large_segment_size", "max_non_split_rounding", "max_non_split_rounding_size", "max_split_size", "trace_alloc_max_entries", "trace_alloc_overflowed",
)

// messageWords are the words of PyTorch's out-of-memory messages.
var messageWords = set(
	"1EB", "Allocation", "CUDA", "Currently", "Device", "GPU", "GiB", "HIP", "If", "Including", "KiB", "Management", "Memory", "MiB", "NPU", "Of",
	"Process", "PyTorch", "See", "Tried", "XPU", "a", "allocate", "allocated", "allocator", "allowed", "already", "an", "and", "avoid", "be", "but",
	"by", "bytes", "can", "capacity", "device", "documentation", "exceed", "for", "fragmentation", "free", "from", "graph", "graphs", "has", "in",
	"including", "is", "large", "limit", "memory", "more", "non-PyTorch", "of", "on", "out", "pools", "pool", "private", "requested", "reserved", "set",
	"setting", "than", "the", "this", "to", "total", "try", "unallocated", "use", "which", "with", "would",
	"CUDAGraphs", "Graphs", "max_split_size_mb", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
	"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True", "PYTORCH_ALLOC_CONF=expandable_segments:True",
	"https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
	"https://pytorch.org/docs/stable/notes/cuda.html#environment-variables",
)

// factFields are the fields of our recorder whose values are numbers, or true or
// false, or lists of them.
var factFields = set(
	"version", "late", "time_us", "pid", "rank", "attempt", "world", "device", "step", "steps", "request_bytes", "segment_bytes", "device_free_bytes",
	"limit_bytes", "limit_known", "ooms", "max_entries",
)

// deviceFields are those of a device among them.
var deviceFields = set("index", "total_memory", "free_bytes", "total_bytes", "limit_bytes", "limit_known")

// fileFields, and those of segments and events, are what later versions of
// PyTorch add.
var fileFields = set("trace_alloc_max_entries", "trace_alloc_overflowed", "is_expandable", "registration_counter")

func set(words ...string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words {
		m[w] = true
	}
	return m
}
