package main

import "strings"

// row is one claim.
type row struct {
	id, claim string
	command   string // the experiment
	source    string // of measured figures: card, date; filled in for those of claims.py
	fromGPU   string // the id of claims.py that has the values, or empty
	values    func(*lab) ([]value, error)
	show      func(float64) string
	rule      rule
	when      string // said if the claim holds for some values
	general   string // how far it goes
}

const (
	recordings   = "`ashlar whatif FILE`"
	h200         = "H200, PyTorch 2.11, 15 November 2026"
	driver       = "H200, driver 580.159, 15 November 2026"
	truth        = "`make truth`"
	gpuScript    = "`tools/bench/gpu/claims.py`"
	hostPage     = "docs/measured/host.md"
	costsMachine = "two cores (AMD EPYC), Debian 12, 16 November 2026"
	ofOurs       = "ten training and serving workloads of 5 to 16 steps, two seeds; address rules of the H200's driver"
)

// group is a part of the page.
type group struct {
	title string
	rows  []row
}

func groups() []group {
	return []group{
		{"Caching", caching()},
		{"Fragmentation and settings", fragmentation()},
		{"Planning", planning()},
		{"Other memory", otherMemory()},
		{"Mallocs of the CPU", mallocs()},
	}
}

func caching() []row {
	return []row{
		{
			id: "caching", claim: "Without the cache a training step spends 15 to 20 % of its time in cudaMalloc and cudaFree",
			command: gpuScript + ": steps with `PYTORCH_NO_CUDA_MEMORY_CACHING=1` beside the defaults", fromGPU: "settings",
			values: (*lab).shareOfCaching, show: percent, rule: between(0.15, 0.20, percent),
			when: "a step has as many and as large requests for its arithmetic", general: "four workloads, the GPU to itself",
		},
		{
			id: "caching-driver", claim: "The same, by the calls of recorded runs",
			command: "`ashlar whatif FILE --no-cache`: driver time / (time of the run + driver time), without the waits for the GPU", source: "replay with the costs of an H200",
			values: (*lab).driverShare, show: percent, rule: between(0.15, 0.20, percent), when: "a run makes as many requests for its time; each free also waits for the GPU, which comes on top", general: ofOurs + "; recording slowed these runs a little",
		},
		{
			id: "hit-rate", claim: "99 % of allocations are served from the cache",
			command: truth + ": 1 - `num_device_alloc` / allocations of whole runs, warm-up included", source: h200,
			values: func(l *lab) ([]value, error) {
				var out []value
				for _, m := range l.runs {
					if m.Label == "default" {
						out = append(out, value{m.key(), 1 - m.Calls/m.Allocations})
					}
				}
				return out, nil
			},
			show: plainPercent, rule: atLeast(0.99, percent),
			when: "the driver calls of a run, here 33 to 229, are few beside its requests, here 3,368 to 135,939", general: ofOurs + ". Without the warm-up: [hit-rate-warm](#hit-rate-warm)",
		},
		{
			id: "hit-rate-warm", claim: "After the first iterations 95 to 100 % are",
			command: "`ashlar stats FILE`: the second half of the steps", source: "replay",
			values: (*lab).warmHits, show: plainPercent, rule: atLeast(0.95, percent), when: "shapes repeat", general: ofOurs,
		},
		{
			id: "hit-rate-gpu", claim: "And all of them where the shapes were seen before",
			command: gpuScript + ": a second pass over the same shapes", fromGPU: "hit-rate",
			values: (*lab).secondPass, show: plainPercent, rule: atLeast(0.999, plainPercent), when: "the shapes repeat in the same order", general: "four workloads",
		},
		driverCalls("cudamalloc-us", "cudaMalloc takes about 50 µs", "cuMemAlloc, µs", between(25e-6, 100e-6, duration), "up to 512 MiB"),
		driverCalls("cudamalloc-ms", "cudaMalloc takes about 1 ms", "cuMemAlloc, µs", between(0.5e-3, 2e-3, duration), "several GiB are asked for at once"),
		driverCalls("cudamalloc-slow", "cudaMalloc takes 50 to 200 ms", "cuMemAlloc, µs", between(50e-3, 200e-3, duration), ""),
		driverCalls("cudafree-us", "cudaFree takes about 10 µs", "cuMemFree, µs", between(5e-6, 20e-6, duration), ""),
		driverCalls("cudafree-ms", "cudaFree takes about 0.8 ms", "cuMemFree, µs", between(0.4e-3, 1.6e-3, duration), "1 to 2 GiB are freed"),
		{
			id: "cached-call", claim: "An allocation that hits the cache takes up to 1 µs",
			command: gpuScript + ": `torch.empty` and `del`", fromGPU: "empty-del",
			values: func(l *lab) ([]value, error) { return l.calls(true) }, show: duration, rule: atMost(1e-6, duration),
			when: "the request is small", general: "from Python, both calls and the tensor's object included; PyTorch's own part is less",
		},
		{
			id: "uncached-call", claim: "The cache makes an allocation 50 times faster",
			command: gpuScript + ": the same with and without the cache", fromGPU: "empty-del",
			values: (*lab).callRatio, show: times, rule: atLeast(50, times), when: "the request is large", general: "an H200 that is idle: cudaFree waits for the GPU otherwise",
		},
		{
			id: "empty-cache", claim: "`empty_cache()` costs 5 to 20 ms a call",
			command: recordings + " `--empty-cache every:1`: driver time for each call, what is fetched again included, without the wait for the GPU", source: "replay with the costs of an H200",
			values: (*lab).emptyCache, show: duration, rule: between(5e-3, 20e-3, duration),
			when: "there are gigabytes of cache in many segments", general: ofOurs + "; estimated by [the table of driver calls](measured/whatif.md#driver-time). Measured: [empty-cache-gpu](#empty-cache-gpu)",
		},
		{
			id: "empty-cache-gpu", claim: "The same on the GPU, the call alone",
			command: gpuScript + ": `torch.cuda.empty_cache()` after a pass, the GPU idle", fromGPU: "empty-cache",
			values: (*lab).emptyCacheGPU, show: duration, rule: between(5e-3, 20e-3, duration), when: "there are gigabytes of cache in many segments", general: "four workloads",
		},
	}
}

func driverCalls(id, claim, line string, r rule, when string) row {
	return row{
		id: id, claim: claim, command: "`ashlar gpu bench`, `tools/bench/driver/costs.py`", source: driver,
		values: func(l *lab) ([]value, error) { return l.driverTable(line) }, show: duration, rule: r, when: when,
		general: "2 MiB to 8 GiB on an idle H200: the time grows with the size, and with what the driver has to wait for",
	}
}

func fragmentation() []row {
	measured := func(id, claim, label, when string) row {
		return row{
			id: id, claim: claim, command: truth + ": peak reserved beside the defaults'", source: h200,
			values: func(l *lab) ([]value, error) { return l.reservedChange(label), nil },
			show:   change, rule: below(0, percent), when: when, general: ofOurs,
		}
	}
	saved := func(id, claim, label, when string) row {
		return row{
			id: id, claim: claim, command: truth + ": of the runs that fail just above their live peak, those that pass (1)", source: h200,
			values: func(l *lab) ([]value, error) { return l.rescues(label), nil },
			show:   plain, rule: atLeast(1, plain), when: when, general: ofOurs + ", limits of 1.03 times the peak of live bytes",
		}
	}
	return []row{
		{
			id: "fragmentation", claim: "Fragmentation takes 10 to 30 % of the memory",
			command: truth + ": 1 - peak active / peak reserved under the defaults", source: h200,
			values: func(l *lab) ([]value, error) {
				var out []value
				for _, m := range l.runs {
					if m.Label == "default" {
						out = append(out, value{m.key(), 1 - m.Active/m.Reserved})
					}
				}
				return out, nil
			},
			show: percent, rule: between(0.10, 0.30, percent), when: "shapes vary from step to step; with equal steps it is less, with resolutions or lengths that vary widely more", general: ofOurs,
		},
		measured("expandable-segments", "`expandable_segments:True` lowers reserved memory", "expand", "shapes vary; a job with equal steps has nothing to gain"),
		saved("expandable-rescues", "`expandable_segments:True` saves a run that dies of fragmentation", "expand", "the run dies of fragmentation; one whose tensors alone are too many is not saved"),
		measured("max-split-size", "`max_split_size_mb:128` lowers reserved memory", "split128", "few requests are larger than 128 MiB"),
		saved("max-split-rescues", "`max_split_size_mb:128` saves a run that dies of fragmentation", "split128", "what is too large to be split is also freed first when a request fails, and that was enough"),
		measured("max-split-512", "`max_split_size_mb:512` lowers reserved memory", "split512", ""),
		measured("roundup", "`roundup_power2_divisions:4` lowers reserved memory", "round4", "rounding makes sizes equal that were nearly so"),
		measured("gc-threshold", "`garbage_collection_threshold:0.8` lowers reserved memory", "gc8", ""),
		{
			id: "gc-rescues", claim: "A `garbage_collection_threshold` of 0.6 to 0.8 saves a run that dies of fragmentation",
			command: recordings + " `--limit LIMIT --set garbage_collection_threshold:0.6`, and 0.8: of the runs that fail, those that pass (1)", source: "replay",
			values: func(l *lab) ([]value, error) {
				low, err := l.replayedRescues("garbage_collection_threshold:0.6")
				if err != nil {
					return nil, err
				}
				high, err := l.replayedRescues("garbage_collection_threshold:0.8")
				return append(low, high...), err
			},
			show: plain, rule: atLeast(1, plain), when: "freeing idle segments early happens to keep the rest together", general: ofOurs + ". It frees whole segments that lie idle, which PyTorch does anyway before a request fails",
		},
		measured("inference-preset", "`"+inference+"`, the inference preset, lowers reserved memory", "infer", "the job has few large requests of different sizes"),
		{
			id: "training-preset", claim: "`" + training + "`, the training preset, lowers reserved memory",
			command: recordings + " `--set " + training + "`", source: "replay",
			values: func(l *lab) ([]value, error) { return l.replayedChange(training) }, show: change, rule: below(0, percent),
			when: "few requests are larger than 128 MiB", general: ofOurs + ". The two settings together are [a known trap](measured/whatif.md#how-well-it-predicts)",
		},
		{
			id: "training-preset-gpu", claim: "The same on the GPU", command: gpuScript, fromGPU: "settings",
			values: func(l *lab) ([]value, error) { return l.settingsChange("training-preset") }, show: change, rule: below(0, percent), when: "few requests are larger than 128 MiB",
			general: "four workloads",
		},
	}
}

const (
	training  = "max_split_size_mb:128,garbage_collection_threshold:0.7,expandable_segments:True"
	inference = "max_split_size_mb:512,garbage_collection_threshold:0.8,expandable_segments:True"
)

var (
	decoder = strings.Fields("testdata/claims/decoder-24x1024.json --batch 8 --seq 2048 --dtype fp32")
	llama   = strings.Fields("testdata/claims/llama-7b.json --batch 4 --seq 2048 --dtype bf16 --recompute full")
)

func planCommand(args []string, more string) string {
	return "`ashlar plan " + strings.TrimSpace(strings.Join(args, " ")+" "+more) + "`"
}

func planning() []row {
	one := func(f func(*lab) (float64, error)) func(*lab) ([]value, error) {
		return func(l *lab) ([]value, error) {
			x, err := f(l)
			return []value{{x: x}}, err
		}
	}
	const exact = "plans agree with measured peaks to the byte on 51 of 52 runs ([measured/plan.md](measured/plan.md))"
	return []row{
		{
			id: "activations", claim: "Activations take layers x batch x sequence x width x 4 bytes: 1.5 GB for 24 layers of 1024, batch 8 of 2048",
			command: planCommand(decoder, "--recompute none"), source: "plan",
			values: one(func(l *lab) (float64, error) {
				p, err := l.plan(decoder, "--recompute", "none")
				return p.kinds("activations"), err
			}),
			show: size, rule: between(1.35e9, 1.8e9, size), general: "a layer keeps about thirty tensors of that size, not one; " + exact,
		},
		{
			id: "checkpointing", claim: "Checkpointing divides the memory of activations by 5",
			command: planCommand(decoder, "") + " with `--recompute sqrt` and `full`: activations and recomputed layers at the peak", source: "plan",
			values: (*lab).checkpointing, show: times, rule: between(4, 6, times), when: "a checkpoint stands for several layers",
			general: "it is as many times as there are layers between checkpoints, less what is recomputed at once; logits and weights stay. " + exact,
		},
		{
			id: "checkpointing-time", claim: "Checkpointing takes 33 % more compute",
			command: gpuScript + ": 24 encoder layers of 1024, and 20 linear layers of 4096", fromGPU: "checkpointing",
			values: (*lab).checkpointTime, show: change, rule: between(0.25, 0.40, percent), when: "the GPU is busy with the layers that are repeated",
			general: "one forward pass more for one forward and two backward ones: a third, less what is not repeated",
		},
		{
			id: "checkpointing-gpu", claim: "The memory of the same passes is divided by 5", command: gpuScript, fromGPU: "checkpointing",
			values: (*lab).checkpointMemory, show: times, rule: between(4, 6, times), when: "a checkpoint stands for several layers", general: "peaks beyond the weights",
		},
		{
			id: "seven-b-weights", claim: "A 7B model in fp16 takes about 14 GB", command: planCommand(llama, ""), source: "plan",
			values: one(func(l *lab) (float64, error) {
				p, err := l.plan(llama)
				return p.kinds("parameters"), err
			}),
			show: size, rule: between(12.6e9, 15.4e9, size), general: "2 bytes a parameter; " + exact,
		},
		{
			id: "seven-b-training", claim: "A 7B model trains in 36 GB, on a 40 GB card: mixed precision, checkpointing, batch 4 of 2048",
			command: planCommand(llama, "--master-weights"), source: "plan",
			values: one(func(l *lab) (float64, error) {
				p, err := l.plan(llama, "--master-weights")
				return p.Reserved, err
			}),
			show: size, rule: atMost(40e9, size), general: "fp32 master weights and two fp32 states are 12 bytes a parameter by themselves; with bf16 states (" + planCommand(llama, "") + ") it is half, and still too much. " + exact,
		},
		{
			id: "adam-factor", claim: "Training with Adam takes 4 to 6 times the weights",
			command: planCommand(llama, "") + ", and with `--master-weights`: peak allocated / weights", source: "plan",
			values: (*lab).adamFactor, show: times, rule: between(4, 6, times), when: "weights, gradients and states are all in bf16", general: "with checkpointing; activations come on top. " + exact,
		},
		{
			id: "bytes-per-parameter", claim: "Weights, gradients and Adam's states take 16 bytes a parameter in mixed precision",
			command: planCommand(llama, "--master-weights") + ": those kinds at the peak / parameters", source: "plan",
			values: one(func(l *lab) (float64, error) {
				p, err := l.plan(llama, "--master-weights")
				return p.kinds("parameters", "gradients", "master weights", "optimizer state") / p.Parameters, err
			}),
			show: plain, rule: between(15.5, 16.5, plain), general: "the optimizer has the gradients in fp32 when it works on fp32 copies: two bytes more. " + exact,
		},
		{
			id: "torch-save", claim: "`torch.save(state_dict())` needs the weights a second time on the GPU",
			command: planCommand(llama, "--save torch") + " beside `--save none`; by PyTorch's source", source: "plan",
			values: (*lab).saving, show: times, rule: between(0.9, 1.1, times), general: "a program that clones the state first does: `--save sync`. Measured: [torch-save-gpu](#torch-save-gpu)",
		},
		{
			id: "torch-save-gpu", claim: "The same on the GPU", command: gpuScript + ": `max_memory_allocated` during the save, of the weights", fromGPU: "torch-save",
			values: (*lab).savingGPU, show: percent, rule: between(0.9, 1.1, percent), general: "1.5 GiB of fp32 weights",
		},
	}
}

func otherMemory() []row {
	return []row{
		{
			id: "cuda-malloc-async", claim: "cudaMallocAsync gives 2 to 5 times the throughput in serving",
			command: gpuScript + ": a generate loop under `backend:cudaMallocAsync` beside the defaults", fromGPU: "settings",
			values: (*lab).asyncServing, show: times, rule: between(2, 5, times), general: "beside PyTorch's own cache. Over bare cudaMalloc: [async-call](#async-call)",
		},
		{
			id: "async-call", claim: "cudaMallocAsync takes 2 to 5 times less than cudaMalloc",
			command: "`ashlar gpu bench`: cuMemAlloc and cuMemFree / cuMemAllocAsync and cuMemFreeAsync", source: driver,
			values: (*lab).asyncCall, show: times, rule: between(2, 5, times), general: "2 MiB to 2 GiB, memory that the pool has: the call is some fifty to hundreds of times faster",
		},
		{
			id: "managed", claim: "Managed memory is 10 to 100 times slower", command: "`ashlar gpu bench`: 256 MiB there, through a kernel and back; on demand, and prefetched, beside copies", source: driver,
			values: (*lab).managed, show: times, rule: between(10, 100, times), general: "every page once, in order. Random access: `ashlar gpu bench`",
		},
	}
}

func mallocs() []row {
	general := "the workloads of [measured/host.md](measured/host.md): glibc 2.36, jemalloc 5.3.0, tcmalloc 2.10, two cores. Its service, when idle, holds 0.41 of glibc's under jemalloc, 0.60 under tcmalloc"
	ratio := func(id, claim, name string, table int, r rule, when string) row {
		return row{
			id: id, claim: claim, command: "`ashlar host bench`: of glibc's", source: "two cores (AMD EPYC), Debian 12, 15 November 2026",
			values: func(l *lab) ([]value, error) { return l.mallocRatio(name, table) }, show: times, rule: r, when: when, general: general,
		}
	}
	return []row{
		ratio("jemalloc-half", "jemalloc halves the resident memory of a process", "`jemalloc`", 0, atMost(0.5, times), "many threads free what they made, and end"),
		ratio("jemalloc-20-40", "jemalloc holds 20 to 40 % less", "`jemalloc`", 0, between(0.6, 0.8, times), ""),
		ratio("jemalloc-background", "jemalloc with a background thread halves it", "`jemalloc-bg`", 0, atMost(0.5, times), "the process is idle after a burst"),
		ratio("tcmalloc-fast", "tcmalloc takes less CPU time", "`tcmalloc`", 1, below(0.8, times), "the program allocates small blocks all the time, from several threads"),
		{
			id: "tcmalloc-thread", claim: "tcmalloc keeps 10 to 50 MB a thread", command: "`ashlar host costs`: what it keeps for a thread that has worked and is idle", source: costsMachine,
			values: (*lab).idleThread, show: size, rule: between(10e6, 50e6, size), general: "small blocks of many sizes. What 16 threads leave in the common heap is more: [measured/host.md](measured/host.md#the-workloads)",
		},
		{
			id: "malloc-ns", claim: "malloc takes about 100 ns", command: "`ashlar host costs --each 100ms`: malloc and free under glibc, one thread, up to 64 KiB", source: costsMachine,
			values: (*lab).mallocTime, show: duration, rule: between(50e-9, 200e-9, duration), when: "the machine is busy: the slow sizes lie between fast ones", general: "a block that was freed just before; a busy machine shows in it",
		},
		{
			id: "size-class", claim: "A request of 513 bytes gets 576", command: "`ashlar host costs`: what each malloc lets it use", source: costsMachine,
			values: (*lab).usable513, show: plain, rule: exactly(576, plain), when: "the malloc is tcmalloc", general: "each malloc has size classes of its own; glibc has one every 16 bytes",
		},
	}
}
