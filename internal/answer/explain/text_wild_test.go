package explain

// The ends of PyTorch's messages.
const (
	adviceExpandable = "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
	adviceSplit      = "If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
	adviceSplit21    = "If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
	adviceMPS        = "Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure)."
)

type wildMessage struct {
	name, text          string
	verdict, confidence string
	underCap            bool
	sums                []string
}

// wild are messages from public issues, which their names tell, and what their
// numbers say.
var wild = []wildMessage{
	{
		"pytorch#59778",
		"CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; 781.59 MiB already allocated; 3.03 GiB free; 1.24 GiB reserved in total by PyTorch)",
		Unknown, Open, false,
		[]string{"6.00 GiB on the device - 3.03 GiB free - 1.24 GiB reserved by PyTorch = 1.73 GiB not owned by PyTorch", "0.76 GiB (781.59 MiB) allocated + 2.26 GiB for the request = 3.02 GiB needed"},
	},
	{
		"CADS#4",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB of which 12.73 GiB is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the allocated memory 9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated. " + adviceExpandable,
		Capacity, Likely, false,
		[]string{"31.47 GiB on the device - 12.73 GiB free - 18.43 GiB reserved by PyTorch = 0.31 GiB not owned by PyTorch", "9.08 GiB allocated + 22.78 GiB for the request = 31.86 GiB needed"},
	},
	{
		"MGFN#35",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacty of 6.00 GiB of which 0 bytes is free. Of the allocated memory 2.93 GiB is allocated by PyTorch, and 2.30 GiB is reserved by PyTorch but unallocated. " + adviceSplit21,
		Fragmentation, Open, false,
		[]string{"6.00 GiB on the device - 0.00 GiB free - 5.23 GiB reserved by PyTorch = 0.77 GiB not owned by PyTorch", "2.93 GiB allocated + 1.70 GiB for the request = 4.63 GiB needed"},
	},
	{
		"One-2-3-45#25",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.69 GiB (GPU 0; 14.56 GiB total capacity; 649.97 MiB already allocated; 1.31 GiB free; 1.01 GiB reserved in total by PyTorch) " + adviceSplit,
		External, Open, false,
		[]string{"14.56 GiB on the device - 1.31 GiB free - 1.01 GiB reserved by PyTorch = 12.24 GiB not owned by PyTorch", "0.63 GiB (649.97 MiB) allocated + 1.69 GiB for the request = 2.32 GiB needed"},
	},
	{
		"MyGirlGPT#11",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacty of 4.00 GiB of which 41.56 MiB is free. Including non-PyTorch memory, this process has 3.44 GiB memory in use. Of the allocated memory 2.58 GiB is allocated by PyTorch, and 1.90 MiB is reserved by PyTorch but unallocated. " + adviceSplit21 + ".",
		Unknown, Open, false,
		[]string{"4.00 GiB on the device - 0.04 GiB (41.56 MiB) free - 2.58 GiB reserved by PyTorch = 1.38 GiB not owned by PyTorch", "2.58 GiB allocated + 0.03 GiB (32.00 MiB) for the request = 2.61 GiB needed"},
	},
	{
		"FramePack#369",
		"CUDA out of memory. Tried to allocate 30.29 GiB. GPU 0 has a total capacity of 10.74 GiB of which 3.69 GiB is free. Including non-PyTorch memory, this process has 6.68 GiB memory in use. Of the allocated memory 6.10 GiB is allocated by PyTorch, and 396.58 MiB is reserved by PyTorch but unallocated. " + adviceExpandable,
		Capacity, Certain, false,
		[]string{"10.74 GiB on the device - 3.69 GiB free - 6.49 GiB reserved by PyTorch = 0.56 GiB not owned by PyTorch", "6.10 GiB allocated + 30.29 GiB for the request = 36.39 GiB needed"},
	},
	{
		"Self_Explaining#6",
		"Tried to allocate 20.00 MiB (GPU 0; 1.96 GiB total capacity; 1.24 GiB already allocated; 2.88 MiB free; 1.25 GiB reserved in total by PyTorch)",
		NearlyFull, Open, false,
		[]string{"1.96 GiB on the device - 0.00 GiB (2.88 MiB) free - 1.25 GiB reserved by PyTorch = 0.71 GiB not owned by PyTorch", "1.24 GiB allocated + 0.01 GiB (10.50 MiB) for the request (about) = 1.25 GiB needed"},
	},
	{
		"localGPT#7",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.63 GiB (GPU 0; 44.56 GiB total capacity; 27.91 GiB already allocated; 565.31 MiB free; 27.93 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation. See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
		External, Likely, false,
		[]string{"44.56 GiB on the device - 0.55 GiB (565.31 MiB) free - 27.93 GiB reserved by PyTorch = 16.08 GiB not owned by PyTorch", "27.91 GiB allocated + 1.63 GiB for the request = 29.54 GiB needed"},
	},
	{
		"Fooocus#1902",
		"CUDA out of memory. Tried to allocate 10.00 MiB. GPU 0 has a total capacty of 6.00 GiB of which 1.57 GiB is free. Of the allocated memory 3.24 GiB is allocated by PyTorch, and 154.45 MiB is reserved by PyTorch but unallocated. " + adviceSplit21,
		Unknown, Open, false,
		[]string{"6.00 GiB on the device - 1.57 GiB free - 3.39 GiB reserved by PyTorch = 1.04 GiB not owned by PyTorch", "3.24 GiB allocated + 0.01 GiB (10.00 MiB) for the request = 3.25 GiB needed"},
	},
	{
		"pytorch#35901",
		"CUDA out of memory. Tried to allocate 10.84 GiB (GPU 0; 23.65 GiB total capacity; 1.06 GiB already allocated; 10.26 GiB free; 12.53 GiB reserved in total by PyTorch)",
		Fragmentation, Open, false,
		[]string{"23.65 GiB on the device - 10.26 GiB free - 12.53 GiB reserved by PyTorch = 0.86 GiB not owned by PyTorch", "1.06 GiB allocated + 10.84 GiB for the request = 11.90 GiB needed"},
	},
	{
		"sd-scripts#2029",
		"[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.99 GiB. GPU 0 has a total capacity of 23.56 GiB of which 1.23 GiB is free. Including non-PyTorch memory, this process has 22.27 GiB memory in use. Of the allocated memory 14.73 GiB is allocated by PyTorch, and 6.39 GiB is reserved by PyTorch but unallocated. " + adviceExpandable,
		Fragmentation, Open, false,
		[]string{"23.56 GiB on the device - 1.23 GiB free - 21.12 GiB reserved by PyTorch = 1.21 GiB not owned by PyTorch", "14.73 GiB allocated + 1.99 GiB for the request = 16.72 GiB needed"},
	},
	{
		"TheRock#1054",
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.24 GiB of which 15.09 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		Capacity, Likely, false,
		[]string{"15.24 GiB on the device - 15.09 GiB free - 0.00 GiB reserved by PyTorch = 0.15 GiB not owned by PyTorch", "0.00 GiB allocated + 16.00 GiB for the request = 16.00 GiB needed"},
	},
	{
		"pytorch#175431",
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 7 has a total capacity of 287.98 GiB of which 203.49 GiB is free. Of the allocated memory 68.63 GiB is allocated by PyTorch, and 14.93 GiB is reserved by PyTorch but unallocated. " + adviceExpandable,
		Unknown, Open, false,
		[]string{"287.98 GiB on the device - 203.49 GiB free - 83.56 GiB reserved by PyTorch = 0.93 GiB not owned by PyTorch", "68.63 GiB allocated + 0.00 GiB (1.00 MiB) for the request (at most) = 68.63 GiB needed"},
	},
	{
		"autotrain#737",
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 124.00 MiB. GPU 0 has a total capacity of 19.94 GiB of which 554.47 MiB is free. Of the allocated memory 15.87 GiB is allocated by PyTorch, and 165.29 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
		Unknown, Open, false,
		[]string{"19.94 GiB on the device - 0.54 GiB (554.47 MiB) free - 16.03 GiB reserved by PyTorch = 3.37 GiB not owned by PyTorch", "15.87 GiB allocated + 0.12 GiB (124.00 MiB) for the request = 15.99 GiB needed"},
	},
	{
		"TheRock#2118",
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 255.98 GiB of which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch, with 17.00 MiB allocated in private pools (e.g., HIP Graphs), and 54.99 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
		Pools, Open, true,
		[]string{"255.98 GiB on the device - 244.65 GiB free - 1.05 GiB reserved by PyTorch = 10.28 GiB not owned by PyTorch", "1.05 GiB reserved + 0.00 GiB (2.00 MiB) for a new segment = 1.05 GiB in all", "1000.01 MiB allocated + 1.00 MiB for the request (at most) = 1001.01 MiB needed"},
	},
	{
		"TheRock#4598",
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.49 GiB of which 84.98 GiB is free. Of the allocated memory 1.67 GiB is allocated by PyTorch, and 8.08 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
		Unknown, Open, false,
		[]string{},
	},
	{
		"rocm#4358",
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total capacity of 15.98 GiB of which 1.40 GiB is free. Of the allocated memory 1.26 GiB is allocated by PyTorch, and 152.50 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
		External, Likely, false,
		[]string{"15.98 GiB on the device - 1.40 GiB free - 1.41 GiB reserved by PyTorch = 13.17 GiB not owned by PyTorch", "1.26 GiB allocated + 4.50 GiB for the request = 5.76 GiB needed"},
	},
	{
		"ComfyUI#7440",
		"MPS backend out of memory (MPS allocated: 9.57 GiB, other allocations: 17.35 GiB, max allowed: 27.20 GiB). Tried to allocate 292.50 MiB on private pool. " + adviceMPS,
		External, Certain, false,
		[]string{"9.57 GiB held by PyTorch + 17.35 GiB of other allocations of the process + 0.29 GiB (292.50 MiB) requested = 27.21 GiB then held", "27.20 GiB allowed - 17.35 GiB of other allocations = 9.85 GiB for PyTorch"},
	},
	{
		"ComfyUI#7372",
		"MPS backend out of memory (MPS allocated: 17.68 GB, other allocations: 3.95 MB, max allowed: 18.13 GB). Tried to allocate 1024.00 MB on private pool. " + adviceMPS,
		Capacity, Likely, false,
		[]string{"17.68 GiB held by PyTorch + 0.00 GiB (3.95 MiB) of other allocations of the process + 1.00 GiB requested = 18.68 GiB then held", "18.13 GiB allowed - 0.00 GiB (3.95 MiB) of other allocations = 18.13 GiB for PyTorch"},
	},
	{
		"ComfyUI#8984",
		"MPS backend out of memory (MPS allocated: 15.72 GiB, other allocations: 2.41 MiB, max allowed: 18.13 GiB). Tried to allocate 5.81 GiB on private pool. " + adviceMPS,
		Capacity, Likely, false,
		[]string{"15.72 GiB held by PyTorch + 0.00 GiB (2.41 MiB) of other allocations of the process + 5.81 GiB requested = 21.53 GiB then held", "18.13 GiB allowed - 0.00 GiB (2.41 MiB) of other allocations = 18.13 GiB for PyTorch"},
	},
	{
		"joy_caption#28",
		"Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated : 15.16 GiB\nRequested : 512.00 KiB\nDevice limit : 15.99 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit (set by user-supplied memory fraction)\n: 17179869184.00 GiB",
		Capacity, Likely, false,
		[]string{"15.16 GiB allocated + 0.00 GiB (512.00 KiB) for the request = 15.16 GiB needed", "15.99 GiB on the device - 0.00 GiB free - 15.16 GiB allocated = 0.83 GiB in the driver's cache, in contexts and held by others"},
	},
	{
		"AlphAction#58",
		"RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 3.79 GiB total capacity; 654.97 MiB already allocated; 6.00 MiB free; 666.00 MiB reserved in total by PyTorch)",
		Unknown, Open, false,
		[]string{"3.79 GiB on the device - 0.01 GiB (6.00 MiB) free - 0.65 GiB (666.00 MiB) reserved by PyTorch = 3.13 GiB not owned by PyTorch", "654.97 MiB allocated + 1.00 MiB for the request (at most) = 655.97 MiB needed"},
	},
	{
		"taming#194",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.39 GiB (GPU 0; 6.00 GiB total capacity; 4.04 GiB already allocated; 478.00 MiB free; 4.15 GiB reserved in total by PyTorch) " + adviceSplit,
		Capacity, Likely, false,
		[]string{"6.00 GiB on the device - 0.47 GiB (478.00 MiB) free - 4.15 GiB reserved by PyTorch = 1.38 GiB not owned by PyTorch", "4.04 GiB allocated + 1.39 GiB for the request = 5.43 GiB needed"},
	},
	{
		"BasicVSR#39",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB (GPU 0; 15.77 GiB total capacity; 13.52 GiB already allocated; 1.05 GiB free; 13.52 GiB reserved in total by PyTorch) " + adviceSplit,
		External, Likely, false,
		[]string{"15.77 GiB on the device - 1.05 GiB free - 13.52 GiB reserved by PyTorch = 1.20 GiB not owned by PyTorch", "13.52 GiB allocated + 1.12 GiB for the request = 14.64 GiB needed"},
	},
	{
		"gpu-benchmark#1",
		"RuntimeError: CUDA out of memory. Tried to allocate 32.00 MiB (GPU 0; 7.79 GiB total capacity; 6.64 GiB already allocated; 21.00 MiB free; 150.86 MiB cached)",
		Fragmentation, Open, false,
		[]string{"7.79 GiB on the device - 0.02 GiB (21.00 MiB) free - 6.79 GiB reserved by PyTorch = 0.98 GiB not owned by PyTorch", "6.64 GiB allocated + 0.03 GiB (32.00 MiB) for the request = 6.67 GiB needed"},
	},
	{
		"StructureFlow#35",
		"RuntimeError: CUDA out of memory. Tried to allocate 8.13 GiB (GPU 0; 10.76 GiB total capacity; 643.57 MiB already allocated; 8.20 GiB free; 32.43 MiB cached)",
		Unknown, Open, false,
		[]string{"10.76 GiB on the device - 8.20 GiB free - 0.66 GiB (676.00 MiB) reserved by PyTorch = 1.90 GiB not owned by PyTorch", "0.63 GiB (643.57 MiB) allocated + 8.13 GiB for the request = 8.76 GiB needed"},
	},
	{
		"examples#621",
		"RuntimeError: CUDA out of memory. Tried to allocate 26.00 MiB (GPU 0; 1024.00 MiB total capacity; 435.61 MiB already allocated; 24.17 MiB free; 26.39 MiB cached)",
		Fragmentation, Open, false,
		[]string{"1.00 GiB on the device - 0.02 GiB (24.17 MiB) free - 0.45 GiB (462.00 MiB) reserved by PyTorch = 0.53 GiB not owned by PyTorch", "435.61 MiB allocated + 26.00 MiB for the request = 461.61 MiB needed"},
	},
	{
		"mmseg#944",
		"RuntimeError: CUDA out of memory. Tried to allocate 1006.00 MiB (GPU 0; 10.91 GiB total capacity; 9.18 GiB already allocated; 569.81 MiB free; 9.49 GiB reserved in total by PyTorch)",
		Capacity, Likely, false,
		[]string{"10.91 GiB on the device - 0.56 GiB (569.81 MiB) free - 9.49 GiB reserved by PyTorch = 0.86 GiB not owned by PyTorch", "9.18 GiB allocated + 0.98 GiB (1006.00 MiB) for the request = 10.16 GiB needed"},
	},
	{
		"DCRNN#6",
		"RuntimeError:CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 5.80 GiB total capacity; 4.36 GiB already allocated; 6.69 MiB free; 4.63 GiB reserved in total by PyTorch)",
		Fragmentation, Open, false,
		[]string{"5.80 GiB on the device - 0.01 GiB (6.69 MiB) free - 4.63 GiB reserved by PyTorch = 1.16 GiB not owned by PyTorch", "4.36 GiB allocated + 0.02 GiB (20.00 MiB) for the request (at most) = 4.38 GiB needed"},
	},
	{
		"compressed-tensors#587",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.08 GiB is free. Including non-PyTorch memory, this process has 78.09 GiB memory in use. Of the allocated memory 75.31 GiB is allocated by PyTorch, and 1.83 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
		Fragmentation, Open, false,
		[]string{"79.18 GiB on the device - 1.08 GiB free - 77.14 GiB reserved by PyTorch = 0.96 GiB not owned by PyTorch", "75.31 GiB allocated + 1.96 GiB for the request = 77.27 GiB needed"},
	},
	{
		"FBGEMM#5605",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 122.07 GiB. GPU 0 has a total capacity of 255.98 GiB of which 50.64 GiB is free. Of the allocated memory 123.74 GiB is allocated by PyTorch, and 8.94 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)",
		External, Likely, false,
		[]string{"255.98 GiB on the device - 50.64 GiB free - 123.75 GiB reserved by PyTorch = 81.59 GiB not owned by PyTorch", "123.74 GiB allocated + 122.07 GiB for the request = 245.81 GiB needed"},
	},
	{
		"pytorch#31353",
		"RuntimeError: CUDA out of memory. Tried to allocate 1.86 GiB (GPU 0; 31.72 GiB total capacity; 24.58 GiB already allocated; 1.28 GiB free; 5.08 GiB cached)",
		Fragmentation, Open, false,
		[]string{"31.72 GiB on the device - 1.28 GiB free - 29.66 GiB reserved by PyTorch = 0.78 GiB not owned by PyTorch", "24.58 GiB allocated + 1.86 GiB for the request = 26.44 GiB needed"},
	},
	{
		"keys_values#92",
		"[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 572.00 MiB. GPU 0 has a total capacity of 39.49 GiB of which 321.31 MiB is free. Process 3721648 has 414.00 MiB memory in use. Including non-PyTorch memory, this process has 37.46 GiB memory in use. Process 1374765 has 414.00 MiB memory in use. Process 1374763 has 414.00 MiB memory in use. Process 1374764 has 414.00 MiB memory in use. Of the allocated memory 36.04 GiB is allocated by PyTorch, and 321.37 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
		External, Likely, false,
		[]string{"39.490 GiB on the device - 0.314 GiB (321.31 MiB) free - 36.354 GiB reserved by PyTorch = 2.822 GiB not owned by PyTorch", "36.04 GiB allocated + 0.56 GiB (572.00 MiB) for the request = 36.60 GiB needed"},
	},
	{
		"vllm-ascend#19",
		"RuntimeError: NPU out of memory. Tried to allocate 22.00 MiB (NPU 0; 60.97 GiB total capacity; 10.24 GiB already allocated; 10.24 GiB current active; 19.52 MiB free; 10.65 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
		External, Likely, false,
		[]string{"60.97 GiB on the device - 0.02 GiB (19.52 MiB) free - 10.65 GiB reserved by PyTorch = 50.30 GiB not owned by PyTorch", "10.24 GiB allocated + 0.02 GiB (22.00 MiB) for the request = 10.26 GiB needed"},
	},
	{
		"TouchNet#100",
		"RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total capacity; 49.47 GiB already allocated; 49.47 GiB current active; 1.32 GiB free; 57.55 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
		Fragmentation, Open, false,
		[]string{"60.96 GiB on the device - 1.32 GiB free - 57.55 GiB reserved by PyTorch = 2.09 GiB not owned by PyTorch", "49.47 GiB allocated + 5.03 GiB for the request = 54.50 GiB needed"},
	},
	{
		"CogVideo#63",
		"RuntimeError: NPU out of memory. Tried to allocate 35.31 GiB (NPU 0; 60.97 GiB total capacity; 26.13 GiB already allocated; 26.13 GiB current active; 33.81 GiB free; 26.61 GiB reserved in total by PyTorch)",
		Capacity, Likely, false,
		[]string{"60.97 GiB on the device - 33.81 GiB free - 26.61 GiB reserved by PyTorch = 0.55 GiB not owned by PyTorch", "26.13 GiB allocated + 35.31 GiB for the request = 61.44 GiB needed"},
	},
	{
		"LlamaFactory#5491",
		"RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 2; 60.97 GiB total capacity; 59.57 GiB already allocated; 59.57 GiB current active; 16.54 MiB free; 60.06 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
		Fragmentation, Open, false,
		[]string{"60.97 GiB on the device - 0.02 GiB (16.54 MiB) free - 60.06 GiB reserved by PyTorch = 0.89 GiB not owned by PyTorch", "59.57 GiB allocated + 0.38 GiB (386.00 MiB) for the request = 59.95 GiB needed"},
	},
	{
		"replacer#74",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 27.12 GiB. GPU 0 has a total capacty of 11.99 GiB of which 0 bytes is free. Of the allocated memory 16.16 GiB is allocated by PyTorch, and 144.59 MiB is reserved by PyTorch but unallocated. " + adviceSplit21,
		Capacity, Certain, false,
		[]string{"16.16 GiB allocated + 27.12 GiB for the request = 43.28 GiB needed"},
	},
	{
		"TensorRT#175",
		"ERROR:root:CUDA out of memory. Tried to allocate 50.00 MiB (GPU 0; 8.00 GiB total capacity; 22.02 GiB already allocated; 0 bytes free; 22.50 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
		Capacity, Likely, false,
		[]string{"22.02 GiB allocated + 0.05 GiB (50.00 MiB) for the request = 22.07 GiB needed"},
	},
	{
		"GenerateU#10",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 496.00 MiB. GPU 0 has a total capacty of 14.75 GiB of which 235.06 MiB is free. Process 20398 has 14.52 GiB memory in use. Of the allocated memory 14.06 GiB is allocated by PyTorch, and 330.42 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
		Fragmentation, Open, false,
		[]string{"14.75 GiB on the device - 0.23 GiB (235.06 MiB) free - 14.38 GiB reserved by PyTorch = 0.14 GiB not owned by PyTorch", "14.06 GiB allocated + 0.48 GiB (496.00 MiB) for the request = 14.54 GiB needed"},
	},
	{
		"MusePose#20",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 243.00 GiB (GPU 0; 15.99 GiB total capacity; 13.51 GiB already allocated; 0 bytes free; 15.91 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
		Capacity, Certain, false,
		[]string{"15.99 GiB on the device - 0.00 GiB free - 15.91 GiB reserved by PyTorch = 0.08 GiB not owned by PyTorch", "13.51 GiB allocated + 243.00 GiB for the request = 256.51 GiB needed"},
	},
	{
		"taggui#188",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 4.00 GiB of which 2.35 GiB is free. Of the allocated memory 825.15 MiB is allocated by PyTorch, and 24.85 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation. See documentation for Memory Management",
		Unknown, Open, false,
		[]string{"4.00 GiB on the device - 2.35 GiB free - 0.83 GiB (850.00 MiB) reserved by PyTorch = 0.82 GiB not owned by PyTorch", "825.15 MiB allocated + 20.00 MiB for the request (at most) = 845.15 MiB needed"},
	},
	{
		"pytorch#13751",
		"RuntimeError: CUDA out of memory. Tried to allocate 16.00 GiB (GPU 0; 11.93 GiB total capacity; 4.00 GiB already allocated; 7.33 GiB free; 179.00 KiB cached)",
		Capacity, Likely, false,
		[]string{"11.93 GiB on the device - 7.33 GiB free - 4.00 GiB reserved by PyTorch = 0.60 GiB not owned by PyTorch", "4.00 GiB allocated + 16.00 GiB for the request = 20.00 GiB needed"},
	},
	{
		"vllm#15105",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.74 GiB. GPU 1 has a total capacity of 23.57 GiB of which 605.88 MiB is free. Process 133288 has 22.97 GiB memory in use. Of the allocated memory 20.21 GiB is allocated by PyTorch, with 128.00 MiB allocated in private pools (e.g., CUDA Graphs), and 185.98 MiB is reserved by PyTorch but unallocated.",
		External, Likely, false,
		[]string{"23.57 GiB on the device - 0.59 GiB (605.88 MiB) free - 20.39 GiB reserved by PyTorch = 2.59 GiB not owned by PyTorch", "20.085 GiB allocated + 1.740 GiB for the request = 21.825 GiB needed"},
	},
	{
		"club-3090#16",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 23.56 GiB of which 21.75 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use. Of the allocated memory 22.88 GiB is allocated by PyTorch, with 24.00 MiB allocated in private pools (e.g., CUDA Graphs), and 275.38 MiB is reserved by PyTorch but unallocated.",
		Fragmentation, Open, false,
		[]string{"23.56 GiB on the device - 0.02 GiB (21.75 MiB) free - 23.15 GiB reserved by PyTorch = 0.39 GiB not owned by PyTorch", "22.86 GiB allocated + 0.05 GiB (50.00 MiB) for the request = 22.91 GiB needed"},
	},
	{
		"container",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 1 has a total capacty of 79.10 GiB of which 364.31 MiB is free. Process 175080 has 1.46 GiB memory in use. Process 175356 has 77.26 GiB memory in use. Of the allocated memory 72.12 GiB is allocated by PyTorch, and 3.78 GiB is reserved by PyTorch but unallocated.",
		Fragmentation, Open, false,
		[]string{"79.10 GiB on the device - 0.36 GiB (364.31 MiB) free - 75.90 GiB reserved by PyTorch = 2.84 GiB not owned by PyTorch", "72.12 GiB allocated + 0.44 GiB (448.00 MiB) for the request = 72.56 GiB needed"},
	},
	{
		"xpu#3011",
		"XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of 5.65 GiB of which 5.65 GiB is free. Of the allocated memory 195.50 KiB is allocated by PyTorch, and 1.81 MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
		Unknown, Open, false,
		[]string{"5.65 GiB on the device - 5.65 GiB free - 0.00 GiB (2.00 MiB) reserved by PyTorch = 0.00 GiB not owned by PyTorch", "0.00 GiB (195.50 KiB) allocated + 4.66 GiB for the request = 4.66 GiB needed"},
	},
	{
		"GPT2-Chinese#104",
		"(GPU 2; 10.73 GiB total capacity; 9.59 GiB already allocated; 290.56 MiB free; 25.84 MiB cached)",
		Unknown, Open, false,
		[]string{"10.73 GiB on the device - 0.28 GiB (290.56 MiB) free - 9.62 GiB reserved by PyTorch = 0.83 GiB not owned by PyTorch", "9.90 GiB available - 9.59 GiB allocated = 0.31 GiB left for the request at most"},
	},
	{
		"tail",
		"55.05 GiB in use.  Of the allocated memory 16.54 GiB is allocated by PyTorch,\nand 37.94 GiB is reserved by PyTorch but unallocated.\n",
		Unknown, Open, false,
		[]string{},
	},
	{
		"126766",
		"OutOfMemoryError: CUDA out of memory. Tried to allocate 3725.29 GiB. GPU \nIn [2]:",
		Unknown, Open, false,
		[]string{},
	},
	{
		"1EB",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.",
		Capacity, Certain, false,
		[]string{},
	},
	{
		"queue",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 24.39 GiB total capacity; 23.51 GiB already allocated; 512.00 MiB free; 12.04 GiB reserved in total by PyTorch)",
		Unknown, Open, false,
		[]string{},
	},
	{
		"1.8 limit",
		"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 7.80 GiB already allocated; 5.81 GiB free; 7.89 GiB allowed; 7.88 GiB reserved in total by PyTorch)",
		Fragmentation, Open, true,
		[]string{"15.78 GiB on the device - 5.81 GiB free - 7.88 GiB reserved by PyTorch = 2.09 GiB not owned by PyTorch", "7.88 GiB reserved + 0.02 GiB (20.00 MiB) for a new segment = 7.90 GiB in all", "7.80 GiB allocated + 0.02 GiB (20.00 MiB) for the request (at most) = 7.82 GiB needed"},
	},
	{
		"async limit",
		"torch.OutOfMemoryError: Allocation on device 3 would exceed allowed memory. (out of memory)\nCurrently allocated     : 1.31 GiB\nRequested               : 200.00 MiB\nDevice limit            : 139.80 GiB\nFree (according to CUDA): 137.94 GiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 1.40 GiB\n",
		Capacity, Certain, true,
		[]string{"1.31 GiB allocated + 0.20 GiB (200.00 MiB) for the request = 1.51 GiB needed"},
	},
	{
		"cublas",
		"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
		Unknown, Open, false,
		[]string{},
	},
	{
		"nccl",
		"ng30903:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n\nng30903:3063028:3066152 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes",
		Unknown, Open, false,
		[]string{},
	},
	{
		"warn213",
		"[W713 10:00:00.1 CUDACachingAllocator.cpp:900] Warning: memory allocation failed with OOM on device 1 while trying to allocate 1073741824 bytes (free: 20971520, total: 150109880320). (function operator())",
		Unknown, Open, false,
		[]string{},
	},
}
