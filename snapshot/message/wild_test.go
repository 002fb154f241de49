package message

import (
	"strings"
	"testing"
)

// wild are shapes found in public issues; the issue is named beside each.
var wild = []struct{ name, text, want string }{
	// 1.0 to 1.3: "cached" is reserved minus allocated (pytorch/pytorch#13751).
	{
		"#16417", "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)",
		"native CUDA v1.0-1.3 RuntimeError gpu0 tried 12.50 MiB total 10.92 GiB free 9.28 GiB allocated 8.57 MiB unallocated 4.68 MiB",
	},
	{
		"#18853", "RuntimeError: CUDA out of memory. Tried to allocate 1024.00 MiB (GPU 0; 15.90 GiB total capacity; 14.25 GiB already allocated; 991.56 MiB free; 607.00 KiB cached)\n\nDuring handling of the above exception, another exception occurred:",
		"native CUDA v1.0-1.3 RuntimeError gpu0 tried 1024.00 MiB total 15.90 GiB free 991.56 MiB allocated 14.25 GiB unallocated 607.00 KiB",
	},
	{
		"GPT2-Chinese#104, without its head", "(GPU 2; 10.73 GiB total capacity; 9.59 GiB already allocated; 290.56 MiB free; 25.84 MiB cached)\n就是说你GPU ID 2的显卡",
		"native v1.0-1.3 gpu2 total 10.73 GiB free 290.56 MiB allocated 9.59 GiB unallocated 25.84 MiB",
	},

	// 1.4 to 2.0.
	{
		"MADDoG#11", "RuntimeError: CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB already allocated; 19.75 MiB free; 13.71 GiB reserved in total by PyTorch)",
		"native CUDA v1.4-2.0 RuntimeError gpu0 tried 2.87 GiB total 14.76 GiB free 19.75 MiB allocated 8.77 GiB reserved 13.71 GiB",
	},
	{
		"Resume-NER#4, its end cut", "RuntimeError: CUDA out of memory. Tried to allocate 92.00 MiB (GPU 0; 1.96 GiB total capacity; 1.46 GiB already allocated; 16.38 MiB free; 1.51 GiB reserved in total by PyTorch\n\nI tried every possible way",
		"native CUDA v1.4-2.0 RuntimeError gpu0 tried 92.00 MiB total 1.96 GiB free 16.38 MiB allocated 1.46 GiB reserved 1.51 GiB",
	},
	{
		"Lafite#3, without its head", "`Tried to allocate 68.00 MiB (GPU 0; 2.00 GiB total capacity; 758.30 MiB already allocated; 0 bytes free; 830.00 MiB reserved in total by PyTorch)`",
		"native v1.4-2.0 gpu0 tried 68.00 MiB total 2.00 GiB free 0 bytes allocated 758.30 MiB reserved 830.00 MiB",
	},
	{
		"centerX#51, joined to a word", "# whyCUDA out of memory. Tried to allocate 130.00 MiB (GPU 1; 7.80 GiB total capacity; 5.91 GiB already allocated; 33.56 MiB free; 6.09 GiB reserved in total by PyTorch)",
		"native CUDA v1.4-2.0 gpu1 tried 130.00 MiB total 7.80 GiB free 33.56 MiB allocated 5.91 GiB reserved 6.09 GiB",
	},
	{
		"easydiffusion#104", "`RuntimeError: CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 4.00 GiB total capacity; 3.35 GiB already allocated; 0 bytes free; 3.41 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF`\ni get this error",
		"native CUDA v1.10-2.0 RuntimeError gpu0 tried 64.00 MiB total 4.00 GiB free 0 bytes allocated 3.35 GiB reserved 3.41 GiB advice:max_split",
	},
	{
		"iPASSR#9, more than the card has", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 10.73 GiB (GPU 0; 8.00 GiB total capacity; 17.20 GiB already allocated; 0 bytes free; 19.15 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
		"native CUDA v1.13-2.0 torch.cuda.OutOfMemoryError gpu0 tried 10.73 GiB total 8.00 GiB free 0 bytes allocated 17.20 GiB reserved 19.15 GiB advice:max_split",
	},
	{
		"with a limit, from the sources of 1.8", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 7.80 GiB already allocated; 5.81 GiB free; 7.89 GiB allowed; 7.88 GiB reserved in total by PyTorch)",
		"native CUDA v1.4-2.0 RuntimeError gpu0 tried 20.00 MiB total 15.78 GiB free 5.81 GiB limit 7.89 GiB allocated 7.80 GiB reserved 7.88 GiB",
	},
	{
		"broken after each part by a job queue", "[12:01:07] torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB\n[12:01:07] (GPU 1; 24.39 GiB total capacity; 23.51 GiB already allocated; 512.00 MiB free;\n[12:01:07]  ... 12.04 GiB reserved in total by PyTorch)",
		"native CUDA v1.13-2.0 torch.cuda.OutOfMemoryError gpu1 tried 512.00 MiB total 24.39 GiB free 512.00 MiB allocated 23.51 GiB reserved 12.04 GiB",
	},

	// 2.1, with its slip.
	{
		"#99699", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 138.00 MiB.\nGPU 0 has a total capacty of 15.90 GiB of which 8.44 MiB is free.\nProcess 1246069 has 577.00 MiB memory in use. Including non-PyTorch memory,\nthis process has 15.32 GiB memory in use. Of the allocated memory\n14.12 GiB is allocated by PyTorch, and 410.41 MiB is reserved\nby PyTorch but unallocated. If reserved but unallocated memory is large\ntry setting max_split_size_mb to avoid fragmentation.  See documentation\n for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
		"native CUDA v2.1 torch.cuda.OutOfMemoryError gpu0 tried 138.00 MiB total 15.90 GiB free 8.44 MiB allocated 14.12 GiB unallocated 410.41 MiB pid1246069 577.00 MiB self 15.32 GiB advice:max_split",
	},
	{
		"NeuroLens#2, Windows: no processes", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 GiB of which 9.02 GiB is free. Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
		"native CUDA v2.1 torch.cuda.OutOfMemoryError gpu0 tried 55.57 GiB total 12.00 GiB free 9.02 GiB allocated 984.52 MiB unallocated 463.48 MiB advice:max_split",
	},
	{
		"a container: its own pid as a stranger's", "> ```torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 1 has a total capacty of 79.10 GiB of which 364.31 MiB is free. Process 175080 has 1.46 GiB memory in use. Process 175356 has 77.26 GiB memory in use. Of the allocated memory 72.12 GiB is allocated by PyTorch, and 3.78 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF```",
		"native CUDA v2.1 torch.cuda.OutOfMemoryError gpu1 tried 448.00 MiB total 79.10 GiB free 364.31 MiB allocated 72.12 GiB unallocated 3.78 GiB pid175080 1.46 GiB pid175356 77.26 GiB advice:max_split",
	},
	{
		"a preview of 2.2", "CUDA out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 3.05 GiB is free. Process 11488 has 4.28 GiB memory in use. Including non-PyTorch memory, this process has 16.27 GiB memory in use. Of the allocated memory 14.46 GiB is allocated by PyTorch, and 265.91 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
		"native CUDA v2.1-2.2 gpu0 tried 12.00 GiB total 23.69 GiB free 3.05 GiB allocated 14.46 GiB unallocated 265.91 MiB pid11488 4.28 GiB self 16.27 GiB advice:max_split",
	},

	// 2.2 on.
	{
		"#16417, 2024", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is free. Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is allocated by PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		"native CUDA v2.2-2.4 torch.cuda.OutOfMemoryError gpu0 tried 22.00 MiB total 23.65 GiB free 11.06 MiB allocated 22.90 GiB unallocated 194.87 MiB self 23.60 GiB advice:expandable",
	},
	{
		"#126766, 2.3: the text ended by device 0", "OutOfMemoryError: CUDA out of memory. Tried to allocate 3725.29 GiB. GPU \nIn [2]:",
		"native CUDA v2.3 OutOfMemoryError gpu0 tried 3725.29 GiB",
	},
	{
		"vllm#15105", "(VllmWorker rank=1 pid=2978) ERROR 03-19 07:27:53 [multiproc_executor.py:375] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB. GPU 1 has a total capacity of 23.57 GiB of which 605.88 MiB is free. Process 133288 has 22.97 GiB memory in use. Of the allocated memory 20.21 GiB is allocated by PyTorch, with 128.00 MiB allocated in private pools (e.g., CUDA Graphs), and 185.98 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		"native CUDA v2.4-2.10 torch.OutOfMemoryError gpu1 tried 1.74 GiB total 23.57 GiB free 605.88 MiB allocated 20.21 GiB pools 128.00 MiB unallocated 185.98 MiB pid133288 22.97 GiB advice:expandable",
	},
	{
		"trl#5197, 2.10: another variable", "> torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.60 GiB. GPU 0 has a total capacity of 14.74 GiB of which 2.44 GiB is free. Process 21197 has 366.00 MiB memory in use. Process 21194 has 8.07 GiB memory in use. Of the allocated memory 7.85 GiB is allocated by PyTorch, and 86.90 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		"native CUDA v2.10 torch.OutOfMemoryError gpu0 tried 2.60 GiB total 14.74 GiB free 2.44 GiB allocated 7.85 GiB unallocated 86.90 MiB pid21197 366.00 MiB pid21194 8.07 GiB advice:expandable",
	},
	{
		"club-3090#16, 2.11", "(EngineCore pid=112) ERROR 05-01 14:39:06 [core.py:1131] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 23.56 GiB of which 21.75 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use. Of the allocated memory 22.88 GiB is allocated by PyTorch, with 24.00 MiB allocated in private pools (e.g., CUDA Graphs), and 275.38 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)\n(APIServer pid=1) ERROR 05-01 14:39:06 [async_llm.py:699] AsyncLLM output_handler failed.",
		"native CUDA v2.11+ torch.OutOfMemoryError gpu0 tried 50.00 MiB total 23.56 GiB free 21.75 MiB allocated 22.88 GiB pools 24.00 MiB unallocated 275.38 MiB self 23.50 GiB advice:expandable",
	},
	{
		"a note that quotes the end only", "55.05 GiB in use.  Of the allocated memory 16.54 GiB is allocated by PyTorch,\nand 37.94 GiB is reserved by PyTorch but unallocated.\n",
		"native v2.1+ allocated 16.54 GiB unallocated 37.94 GiB",
	},
	{
		"cut in the advice by a summary", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 1 has a total capacty of 7.79 GiB of which 20.69 MiB is free. Including non-PyTorch memory, this process has 7.75 GiB memory in use. Of the allocated memory 7.45 GiB is allocated by PyTorch, and 8.61 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fr...",
		"native CUDA v2.1 torch.cuda.OutOfMemoryError gpu1 tried 128.00 MiB total 7.79 GiB free 20.69 MiB allocated 7.45 GiB unallocated 8.61 MiB self 7.75 GiB advice:other",
	},
	{
		"nccl#1284, the size check", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.",
		"native CUDA v1.13-2.4 torch.cuda.OutOfMemoryError tried 1073741824.00 GiB",
	},
	{"VMamba#294, the type only", "    xs = torch.stack([\ntorch.cuda.OutOfMemoryError: CUDA out of memory.\n```\nI do not understand", "native CUDA v1.13-2.4 torch.cuda.OutOfMemoryError"},

	// Other devices.
	{
		"TheRock#2118, HIP under a limit", "2025-11-12T11:25:13.4961658Z FAILED [0.0005s] test_autograd.py::TestAutogradDeviceTypeCUDA::test_inplace_cuda - torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 255.98 GiB of which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch, with 17.00 MiB allocated in private pools (e.g., HIP Graphs), and 54.99 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		"native HIP v2.4-2.10 torch.OutOfMemoryError gpu0 tried 2.00 MiB total 255.98 GiB free 244.65 GiB limit 1.05 GiB allocated 1017.01 MiB pools 17.00 MiB unallocated 54.99 MiB advice:expandable",
	},
	{
		"ComfyUI#9529, HIP", "HIP out of memory. Tried to allocate 432.00 MiB. GPU 0 has a total capacity of 15.92 GiB of which 7.12 GiB is free. Of the allocated memory 8.08 GiB is allocated by PyTorch, and 321.96 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\nThis error means you ran out of memory on your GPU.",
		"native HIP v2.2-2.10 gpu0 tried 432.00 MiB total 15.92 GiB free 7.12 GiB allocated 8.08 GiB unallocated 321.96 MiB advice:expandable",
	},
	{
		"torch-xpu-ops#3157", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 32.00 GiB. GPU 0 has a total capacity of 11.59 GiB of which 9.01 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. Please use empty_cache to release all unoccupied cached memory. To execute this test,",
		"native XPU torch.OutOfMemoryError gpu0 tried 32.00 GiB total 11.59 GiB free 9.01 GiB allocated 0 bytes unallocated 0 bytes advice:other",
	},
	{
		"torch-xpu-ops#3011", "XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of 5.65 GiB of which 5.65 GiB is free. Of the allocated memory 195.50 KiB is allocated by PyTorch, and 1.81 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
		"native XPU gpu0 tried 4.66 GiB total 5.65 GiB free 5.65 GiB allocated 195.50 KiB unallocated 1.81 MiB advice:other",
	},
	{
		"sglang#29838, Ascend", "torch.OutOfMemoryError: NPU out of memory. Tried to allocate 72.00 MiB (NPU 0; 61.27 GiB total capacity; 56.05 GiB already allocated; 56.05 GiB current active; 5.04 MiB free; 58.39 GiB reserved in total by PyTorch).If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
		"native NPU torch.OutOfMemoryError gpu0 tried 72.00 MiB total 61.27 GiB free 5.04 MiB allocated 56.05 GiB active 56.05 GiB reserved 58.39 GiB advice:max_split",
	},
	{
		"ComfyUI#7440, Apple", "MPS backend out of memory (MPS allocated: 9.57 GiB, other allocations: 17.35 GiB, max allowed: 27.20 GiB). Tried to allocate 292.50 MiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
		"native MPS tried 292.50 MiB limit 27.20 GiB allocated 9.57 GiB advice:other",
	},
	{
		"pinokio#941, Apple, older", "RuntimeError: MPS backend out of memory (MPS allocated: 16.00 GB, other allocations: 3.31 GB, max allowed: 18.13 GB). Tried to allocate 256 bytes on shared pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).",
		"native MPS RuntimeError tried 256 bytes limit 18.13 GiB allocated 16.00 GiB advice:other",
	},

	// cudaMallocAsync.
	{
		"ComfyUI#12360", "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated : 14.81 GiB\nRequested : 320.00 MiB\nDevice limit : 15.92 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied memory fraction)\n: 17179869184.00 GiB\nThis error means you ran out of memory on your GPU.",
		"cudaMallocAsync CUDA v2.0+ gpu0 tried 320.00 MiB total 15.92 GiB free 0 bytes allocated 14.81 GiB",
	},
	{
		"with a limit", "torch.OutOfMemoryError: Allocation on device 3 would exceed allowed memory. (out of memory)\nCurrently allocated     : 1.31 GiB\nRequested               : 200.00 MiB\nDevice limit            : 139.80 GiB\nFree (according to CUDA): 137.94 GiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 1.40 GiB\n",
		"cudaMallocAsync CUDA v2.4+ torch.OutOfMemoryError gpu3 tried 200.00 MiB total 139.80 GiB free 137.94 GiB limit 1.40 GiB allocated 1.31 GiB",
	},
	{
		"retyped in one line", "OOMed: `Allocation on device 0 would exceed allowed memory. Currently allocated: 26.53 GiB / Device limit: 15.92 GiB / Free (according to CUDA): 0 bytes`.",
		"cudaMallocAsync CUDA v2.0+ gpu0 total 15.92 GiB free 0 bytes allocated 26.53 GiB",
	},
	{
		"ComfyUI#4852, ended by device 0", "- **Exception Type:** torch.OutOfMemoryError\n- **Exception Message:** Allocation on device \n## Stack Trace",
		"cudaMallocAsync CUDA v2.3-2.9 gpu0",
	},
	{
		"ComfyUI#6073", "2024-12-16 17:10:56,767 - root - ERROR - !!! Exception during processing !!! Allocation on device \n2024-12-16 17:10:56,770 - root - ERROR - Traceback",
		"cudaMallocAsync CUDA v2.3-2.9 gpu0",
	},

	// Past PyTorch's allocator.
	{"IIM#28", "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call,so the stacktrace below might be incorrect.", "driver by CUDA RuntimeError"},
	{"Wan2GP#1083", "torch.AcceleratorError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported", "driver by CUDA v2.8+ torch.AcceleratorError"},
	{"CR-GAN#8", "RuntimeError: CUDA error:out of memory", "driver by CUDA RuntimeError"},
	{"NCRFpp#121, 0.3", "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/torch/lib/THC/generic/THCStorage.cu:58", "driver by CUDA vup to 1.0 RuntimeError"},
	{"CMT#15", "cuda failed with error 2 out of memory. use CUDA_LAUNCH_BLOCKING=1", "driver by CUDA"},
	{"MFC#989", "call to cuMemAlloc returned error 2 (CUDA_ERROR_OUT_OF_MEMORY): Out of memory", "driver by CUDA"},
	{"Qwen3#873", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "driver by cuBLAS RuntimeError"},
	{"cuDNN", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "driver by cuDNN RuntimeError"},
	{"nccl#1235", "ng30903:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n\nng30903:3063028:3066152 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes", "driver by NCCL tried 6.00 MiB"},
	{"NCCL, numbered", "[rank0]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank0]: Last error:\n[rank0]: Cuda failure 2 'out of memory'", "driver by NCCL"},
	{"Triton", "RuntimeError: Triton Error [CUDA]: out of memory", "driver by Triton RuntimeError"},
	{
		"2.13's warning", "[W713 10:00:00.1 CUDACachingAllocator.cpp:900] Warning: memory allocation failed with OOM on device 1 while trying to allocate 1073741824 bytes (free: 20971520, total: 150109880320). (function operator())",
		"driver by CUDA v2.13+ gpu1 tried 1024.00 MiB total 139.80 GiB free 20.00 MiB",
	},
}

func TestWild(t *testing.T) {
	for _, tt := range wild {
		t.Run(tt.name, func(t *testing.T) {
			all := parse(t, tt.text)
			if len(all) != 1 {
				t.Fatalf("%d messages", len(all))
			}
			if got := brief(all[0]); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestWildTogether: all of them in one text are found apart and in order.
func TestWildTogether(t *testing.T) {
	var b strings.Builder
	for _, tt := range wild {
		b.WriteString(tt.text + "\n\n  File \"train.py\", line 7, in <module>\n    loss.backward()\n    a line that belongs to none of them, long enough to tell them apart ^^^^^^^^^^^^^^^^^^^^^\n")
	}
	all := parse(t, b.String())
	if len(all) != len(wild) {
		t.Fatalf("%d messages of %d", len(all), len(wild))
	}
	for i, tt := range wild {
		if got := brief(all[i]); got != tt.want {
			t.Errorf("%s\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestNone: prose about memory, and messages of other things.
func TestNone(t *testing.T) {
	for _, text := range []string{
		"", "hello", "I keep getting CUDA out of memory, please help", "cuda out of memory errors are the most common",
		"    except RuntimeError as e:\n        if 'CUDA out of memory' in str(e):\n", "raise RuntimeError(\n    \"CUDA out of memory occurred when warming up sampler with \"",
		"RuntimeError: [enforce fail at CPUAllocator.cpp:65] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000000000000000 bytes. Error code 12 (Cannot allocate memory)",
		"java.lang.OutOfMemoryError: Failed to allocate a 24 byte allocation with 1701296 free bytes",
		"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12345 bytes.",
		"NCCL WARN Cuda failure 'invalid resource handle'", "Allocation on device error: what is it?",
		"slurmstepd: error: Detected 1 oom-kill event(s). Some of your processes may have been killed by the cgroup out-of-memory handler.",
	} {
		all, err := Parse(text)
		if err != ErrNotFound || all != nil {
			t.Errorf("%q: %d messages, %v", text, len(all), err)
		}
	}
	if s := ErrNotFound.Error(); !strings.Contains(s, "Tried to allocate") || !strings.Contains(s, "ALLOC_FAILED") {
		t.Errorf("the error does not say what was looked for: %s", s)
	}
}
