package text

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/gpu"
)

func gpuCard() gpu.Card {
	return gpu.Card{
		Index: 0, Name: "NVIDIA H200", UUID: "GPU-01234567-89ab-cdef-0123-456789abcdef", PCIBusID: "0000:19:00.0",
		ComputeCapability: "9.0", Multiprocessors: 132, TotalBytes: 150109880320,
	}
}

const gpuText = `driver 580.159.03, CUDA 13.0, 2 GPUs
  note: CUDA_VISIBLE_DEVICES=0,1 is set: other GPUs of this machine are not
        shown, and the numbers count from 0

0: NVIDIA H200
  compute capability 9.0, 132 multiprocessors, 139.80 GiB
  GPU-01234567-89ab-cdef-0123-456789abcdef at 0000:19:00.0
  memory                total         free         used
    CUDA           139.80 GiB   139.30 GiB   515.55 MiB  as programs see it
    NVML           140.40 GiB   139.81 GiB   605.00 MiB  as nvidia-smi does
  utilisation    a kernel ran 0 % of the time, memory was busy 0 %
  context        512.00 MiB: what each process takes before it allocates anything
  processes      NVML sees none here

1: Bad?[31mname
  compute capability 9.0, 132 multiprocessors, 139.80 GiB
  GPU-01234567-89ab-cdef-0123-456789abcdef at 0000:19:00.0
  memory                total         free         used
    NVML           140.40 GiB    13.00 GiB   127.40 GiB  as nvidia-smi does
  utilisation    a kernel ran 97 % of the time, memory was busy 42 %
  context        not measured: the device is in use, and a context takes memory
                               (--context always makes one)
  processes               pid         used
                         4711   126.00 GiB  python3
                      1234567   512.00 MiB  not visible here
                         4712    not known  ashlar (this one)
  note: something is odd
`

func TestGPU(t *testing.T) {
	busy := gpuCard()
	busy.Index, busy.Name = 1, "Bad\x1b[31mname"
	info := &gpu.Info{
		DriverVersion: ptr("580.159.03"), CUDAVersion: "13.0",
		Notes: []string{"CUDA_VISIBLE_DEVICES=0,1 is set: other GPUs of this machine are not shown, and the numbers count from 0"},
		Devices: []gpu.Device{
			{
				Card:   gpuCard(),
				Driver: &gpu.Memory{TotalBytes: 150109880320, FreeBytes: 149569290240, UsedBytes: 540590080},
				NVML:   &gpu.Memory{TotalBytes: 150754820096, FreeBytes: 150120431616, UsedBytes: 634388480}, ContextBytes: ptr[uint64](512 << 20),
				GPUUtilisation: ptr(0.0), MemoryUtilisation: ptr(0.0),
			},
			{
				Card:           busy,
				NVML:           &gpu.Memory{TotalBytes: 150754820096, FreeBytes: 13 << 30, UsedBytes: 136796176384},
				GPUUtilisation: ptr(0.97), MemoryUtilisation: ptr(0.42),
				ContextNotMeasured: ptr("the device is in use, and a context takes memory (--context always makes one)"),
				Processes: []gpu.Process{
					{PID: 4711, Name: ptr("python3"), UsedBytes: ptr[uint64](126 << 30)},
					{PID: 1234567, UsedBytes: ptr[uint64](512 << 20)},
					{PID: 4712, Name: ptr("ashlar"), Self: true},
				},
				Notes: []string{"something is odd"},
			},
		},
	}
	var b bytes.Buffer
	if err := GPU(&b, info, Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gpuText, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// gpuRow returns a row whose rounds lie a tenth around the median.
func gpuRow(group, kind, part string, median float64, size uint64) gpu.Row {
	r := gpu.Row{
		Group: group, Case: kind, Part: part, Rounds: 40, PerRound: 1, Median: median,
		Low: 0.9 * median, High: 1.1 * median, Least: 0.5 * median, Most: 4 * median,
	}
	if size > 0 {
		r.Size = &size
	}
	return r
}

func gpuBench() *gpu.Bench {
	b := &gpu.Bench{
		Device: gpuCard(), DriverVersion: ptr("580.159.03"), CUDAVersion: "13.0", CPUs: 16, FreeBytes: 149569290240, ElapsedS: 31.42,
		Skipped: []gpu.Skipped{
			{Group: gpu.GroupDriver, Case: gpu.CasePair, Size: ptr[uint64](2 << 30), Why: "it needs 2.00 GiB and may take half of the 3.00 GiB that are free"},
			{Group: gpu.GroupEngine, Case: gpu.CaseWindow, Settings: ptr(gpu.SettingsExpandable), Why: "out of memory"},
			{Group: gpu.GroupRange, Case: gpu.CaseMapping, Size: ptr[uint64](2 << 20), Handles: ptr(500), Why: "out of memory"},
			{Group: gpu.GroupContention, Case: gpu.CaseHot, Goroutines: ptr(8), Settings: ptr(gpu.SettingsPlain), Why: "out of memory"},
		},
		Reading: []string{"One sentence that is computed elsewhere and has its line broken before 94.0 us, not within.", "Another."},
	}
	add := func(rows ...gpu.Row) { b.Rows = append(b.Rows, rows...) }
	const us, mib = 1e3, 1 << 20
	for _, size := range []uint64{4 << 10, 20 * mib} {
		add(gpuRow(gpu.GroupDriver, gpu.CasePair, gpu.PartAlloc, 39*us, size), gpuRow(gpu.GroupDriver, gpu.CasePair, gpu.PartFree, 28*us, size),
			gpuRow(gpu.GroupDriver, gpu.CasePair, gpu.PartAll, 67*us, size))
	}
	async := gpuRow(gpu.GroupAsync, gpu.CasePair, gpu.PartAll, 800, 20*mib)
	async.PerRound = 8192
	add(async, gpuRow(gpu.GroupAsync, gpu.CaseSyncPair, gpu.PartAll, 150*us, 20*mib))
	for _, n := range []int{1, 10, 500} {
		group := gpu.GroupRange
		if n == 1 {
			group = gpu.GroupHandle
		}
		all := 0.0
		for i, part := range []string{gpu.PartCreate, gpu.PartMap, gpu.PartSetAccess, gpu.PartUnmap, gpu.PartRelease, gpu.PartAll} {
			each := []float64{13.9, 1, 52, 28, 13, 0}[i] * us * float64(n)
			all += each
			if part == gpu.PartAll {
				each = all
			}
			r := gpuRow(group, gpu.CaseMapping, part, each, 2*mib)
			r.Handles = &n
			add(r)
		}
	}
	for _, conf := range []string{gpu.SettingsPlain, gpu.SettingsExpandable} {
		for i, kind := range []string{gpu.CaseHot, gpu.CaseWindow, gpu.CaseRecordStream} {
			r := gpuRow(gpu.GroupEngine, kind, gpu.PartAll, []float64{93.3, 180.6, 2400}[i], 0)
			r.Settings, r.PerRound = &conf, 65536
			add(r)
		}
		for i, part := range []string{gpu.PartMalloc, gpu.PartEmpty, gpu.PartAll} {
			r := gpuRow(gpu.GroupGrowth, gpu.CaseGrow, part, []float64{41, 50, 91}[i]*us, 20*mib)
			r.Settings = &conf
			add(r)
		}
	}
	for _, n := range []int{1, 8} {
		r := gpuRow(gpu.GroupContention, gpu.CaseHot, gpu.PartAll, 100+float64(n), 0)
		r.Goroutines, r.PerRound = &n, 65536
		add(r)
	}
	for _, size := range []uint64{256 * mib, 4 << 10} {
		add(gpuRow(gpu.GroupCopy, gpu.CasePinned, gpu.PartToDevice, 5e6, size), gpuRow(gpu.GroupCopy, gpu.CasePinned, gpu.PartToHost, 5.1e6, size),
			gpuRow(gpu.GroupCopy, gpu.CasePageable, gpu.PartToDevice, 2e7, size), gpuRow(gpu.GroupCopy, gpu.CasePageable, gpu.PartToHost, 3e7, size),
			gpuRow(gpu.GroupCopy, gpu.CaseDevice, gpu.PartOnDevice, 2e5, size))
	}
	for i, kind := range []string{gpu.CaseExplicit, gpu.CaseOnDemand, gpu.CasePrefetch} {
		there := []float64{2e7, 2e8, 2.2e7}[i]
		add(gpuRow(gpu.GroupManaged, kind, gpu.PartToDevice, there, 1<<30), gpuRow(gpu.GroupManaged, kind, gpu.PartToHost, 2*there, 1<<30),
			gpuRow(gpu.GroupManaged, kind, gpu.PartAll, 3*there, 1<<30))
	}
	for _, kind := range []string{gpu.CaseDriver, gpu.CasePool} {
		r := gpuRow(gpu.GroupThreads, kind, gpu.PartAll, 70*us, 2*mib)
		r.Goroutines = ptr(16)
		add(r)
	}
	for i, kind := range []string{gpu.CaseReuse, gpu.CaseNoReuse} {
		r := gpuRow(gpu.GroupStreams, kind, gpu.PartAll, 9*us, 2*mib)
		r.Streams, r.PoolReserved = ptr(4), ptr(uint64(1+3*i)*2*mib)
		add(r)
	}
	add(gpuRow(gpu.GroupAccess, gpu.CaseSequential, gpu.PartDevice, 80*us, 256*mib), gpuRow(gpu.GroupAccess, gpu.CaseRandom, gpu.PartFault, 4e7, 256*mib),
		gpuRow(gpu.GroupFault, gpu.CaseOnDemand, gpu.PartFault, 31*us, 0), gpuRow(gpu.GroupFault, gpu.CaseOnDemand, gpu.PartToHost, 22*us, 0))
	for i, part := range []string{gpu.PartToHost, gpu.PartRead, gpu.PartWrite, gpu.PartToDevice, gpu.PartAll} {
		add(gpuRow(gpu.GroupTier, gpu.CasePark, part, []float64{6, 5.3, 5.2, 5, 21.5}[i]*1000*us, 256*mib))
	}
	add(gpuRow(gpu.GroupTier, gpu.CaseHostPages, gpu.PartCreate, 75000*us, 256*mib), gpuRow(gpu.GroupTier, gpu.CaseHostPages, gpu.PartRelease, 9000*us, 256*mib))
	return b
}

func TestGPUBench(t *testing.T) {
	var b bytes.Buffer
	if err := GPUBench(&b, gpuBench(), Style{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gpuBenchText, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Without rows there are no empty tables.
func TestGPUBenchInterrupted(t *testing.T) {
	var b bytes.Buffer
	bench := &gpu.Bench{Device: gpuCard(), CUDAVersion: "12.8", CPUs: 1, Interrupted: true}
	if err := GPUBench(&b, bench, Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	want := `0: NVIDIA H200, CUDA 12.8
  0 B free, 1 CPU, 0.0 s; interrupted: this is what is known. Times are medians
  over rounds; the middle half is where half of the rounds lie. They are the
  host's, which makes the calls through driver/cuda and waits where the table
  says so.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

const gpuBenchText = `0: NVIDIA H200, driver 580.159.03, CUDA 13.0
  139.30 GiB free, 16 CPUs, 31.4 s. Times are medians over rounds; the middle half is where half of
  the rounds lie. They are the host's, which makes the calls through driver/cuda and waits where the
  table says so.

The driver: cuMemAlloc and cuMemFree, the device idle
  size         alloc     free     pair        middle half  rounds
  4.00 KiB   39.0 us  28.0 us  67.0 us  60.3 us - 73.7 us      40
  20.00 MiB  39.0 us  28.0 us  67.0 us  60.3 us - 73.7 us      40

The driver's pool: cuMemAllocAsync and cuMemFreeAsync; it keeps its memory
  size         pair      middle half       rounds
  20.00 MiB  800 ns  720 ns - 880 ns  40 of 8,192

The same, waited for: release threshold 0, the pool gives its memory back
  size         pair      middle half  rounds
  20.00 MiB  150 us  135 us - 165 us      40

Virtual memory: one handle, one call of each of cuMemCreate, cuMemMap and so on
  handle     create      map  set access    unmap  release     all       middle half  rounds
  2.00 MiB  13.9 us  1.00 us     52.0 us  28.0 us  13.0 us  108 us  97.1 us - 119 us      40

Many handles in one range: of 2.00 MiB each; set access and unmap are one call
  handles   create      map  set access    unmap  release      all        middle half  rounds
  10        139 us  10.0 us      520 us   280 us   130 us  1.08 ms   971 us - 1.19 ms      40
  500      6.95 ms   500 us     26.0 ms  14.0 ms  6.50 ms  54.0 ms  48.6 ms - 59.3 ms      40

The same per handle
  handles   create      map  set access    unmap  release     all
  10       13.9 us  1.00 us     52.0 us  28.0 us  13.0 us  108 us
  500      13.9 us  1.00 us     52.0 us  28.0 us  13.0 us  108 us

The engine: malloc and free from its cache, over this driver
  case                               segments       pair        middle half        rounds
  hot pair, 4 KiB                    default     93.3 ns   84.0 ns - 103 ns  40 of 65,536
  window, 512 live, 2^uniform(9,25)  default      181 ns    163 ns - 199 ns  40 of 65,536
  4 KiB with record_stream           default     2.40 us  2.16 us - 2.64 us  40 of 65,536
  hot pair, 4 KiB                    expandable  93.3 ns   84.0 ns - 103 ns  40 of 65,536
  window, 512 live, 2^uniform(9,25)  expandable   181 ns    163 ns - 199 ns  40 of 65,536
  4 KiB with record_stream           expandable  2.40 us  2.16 us - 2.64 us  40 of 65,536

The engine from several goroutines: hot pairs, time per pair over all
  goroutines    pair       middle half        rounds
  1           101 ns  90.9 ns - 111 ns  40 of 65,536
  8           108 ns  97.2 ns - 119 ns  40 of 65,536

The engine when it grows: malloc without a cached block; free, then empty_cache
  size       segments     malloc        middle half  empty_cache  rounds
  20.00 MiB  default     41.0 us  36.9 us - 45.1 us      50.0 us      40
  20.00 MiB  expandable  41.0 us  36.9 us - 45.1 us      50.0 us      40

Copies, each waited for
  from and to                       size     time           rate        middle half  rounds
  page-locked host to device    4.00 KiB  5.00 ms   800.00 KiB/s  4.50 ms - 5.50 ms      40
  device to page-locked host    4.00 KiB  5.10 ms   784.31 KiB/s  4.59 ms - 5.61 ms      40
  ordinary host to device       4.00 KiB  20.0 ms   200.00 KiB/s  18.0 ms - 22.0 ms      40
  device to ordinary host       4.00 KiB  30.0 ms   133.33 KiB/s  27.0 ms - 33.0 ms      40
  within the device             4.00 KiB   200 us    19.53 MiB/s    180 us - 220 us      40
  page-locked host to device  256.00 MiB  5.00 ms    50.00 GiB/s  4.50 ms - 5.50 ms      40
  device to page-locked host  256.00 MiB  5.10 ms    49.02 GiB/s  4.59 ms - 5.61 ms      40
  ordinary host to device     256.00 MiB  20.0 ms    12.50 GiB/s  18.0 ms - 22.0 ms      40
  device to ordinary host     256.00 MiB  30.0 ms     8.33 GiB/s  27.0 ms - 33.0 ms      40
  within the device           256.00 MiB   200 us  1250.00 GiB/s    180 us - 220 us      40

Managed memory against copies: there, read and written by kernels, and back
  size      way                   there     back     both        middle half  rounds
  1.00 GiB  copies              20.0 ms  40.0 ms  60.0 ms  54.0 ms - 66.0 ms      40
  1.00 GiB  managed, on demand   200 ms   400 ms   600 ms    540 ms - 660 ms      40
  1.00 GiB  managed, prefetch   22.0 ms  44.0 ms  66.0 ms  59.4 ms - 72.6 ms      40

The driver from several threads: pairs of 2 MiB, time per pair over all
  call             threads     pair        middle half  rounds
  cuMemAlloc            16  70.0 us  63.0 us - 77.0 us      40
  cuMemAllocAsync       16  70.0 us  63.0 us - 77.0 us      40

The driver's pool with several streams: 2 MiB on one after the other
  pool                  streams     pair  reserved        middle half  rounds
  reuse across streams        4  9.00 us  2.00 MiB  8.10 us - 9.90 us      40
  no reuse                    4  9.00 us  8.00 MiB  8.10 us - 9.90 us      40

A kernel that reads: 256.00 MiB; all of it, a word of every 4 KiB, or as many random words
  order       memory              time        middle half  rounds
  sequential  device memory    80.0 us  72.0 us - 88.0 us      40
  random      managed, faults  40.0 ms  36.0 ms - 44.0 ms      40

A single fault of managed memory, launch and wait included
  access                               time        middle half  rounds
  device reads a word on the host   31.0 us  27.9 us - 34.1 us      40
  host writes a byte on the device  22.0 us  19.8 us - 24.2 us      40

The host's memory in place of the device's, the addresses stay: docs/tiers.md
  size        what                    time         rate        middle half  rounds
  256.00 MiB  parked               6.00 ms  41.67 GiB/s  5.40 ms - 6.60 ms      40
  256.00 MiB  read by a kernel     5.30 ms  47.17 GiB/s  4.77 ms - 5.83 ms      40
  256.00 MiB  written by a kernel  5.20 ms  48.08 GiB/s  4.68 ms - 5.72 ms      40
  256.00 MiB  restored             5.00 ms  50.00 GiB/s  4.50 ms - 5.50 ms      40
  256.00 MiB  host's pages made    75.0 ms   3.33 GiB/s  67.5 ms - 82.5 ms      40
  256.00 MiB  given back           9.00 ms  27.78 GiB/s  8.10 ms - 9.90 ms      40

Left out
  driver pair 2.00 GiB: it needs 2.00 GiB and may take half of the 3.00 GiB that are free
  engine window_512 expandable: out of memory
  range mapping 500 x 2.00 MiB: out of memory
  contention hot_pair 8 goroutines: out of memory

What it shows
  One sentence that is computed elsewhere and has its line broken before 94.0 us, not within.
  Another.
`
