package explain

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
)

// refused is for an error of a library that found memory too small by its own
// reckoning, before a request failed.
func (a *textEvidence) refused() {
	switch a.Refusal.Kind {
	case message.KVCacheTooSmall:
		a.kvCache()
	case message.NoKVCache:
		a.noKVCache()
	case message.DeviceTaken:
		a.deviceTaken()
	case message.SamplerWarmup:
		a.decide(Capacity, Likely, "vLLM ran out of memory when it tried a batch of max_num_seqs=%s sequences. The out-of-memory message before it, which has the numbers, is not in the text.",
			units.Count(int64(a.Refusal.Requests)))
		a.alternative(External, "others took memory of the device after vLLM had measured it%s", a.lister())
		a.code("--max-num-seqs %d: half of that, or --gpu-memory-utilization lower than now: both leave more for the sampler", max(1, a.Refusal.Requests/2))
	case message.ModelOffloaded:
		a.offloaded()
	case message.NoBatchSize:
		a.decide(Capacity, Likely, "accelerate ran out of memory with every batch size down to 1: %s. The text has no message of PyTorch with numbers.", batchOne)
		a.alternative(Unknown, keptReferences)
	}
}

const (
	batchOne       = "a smaller batch does not help; what is there beside the batch is too much"
	keptReferences = "a try that failed keeps its memory: model and optimizer must be made inside the function that find_executable_batch_size calls"
)

// code adds a change of what the user wrote.
func (a *textEvidence) code(format string, args ...any) {
	a.report.Fixes = append(a.report.Fixes, Fix{Kind: FixCode, Detail: fmt.Sprintf(format, args...)})
}

// vllmBlock is how many tokens vLLM gives out at a time on most devices.
const vllmBlock = 16

// kvCache is for a KV cache that does not hold one request of full length.
func (a *textEvidence) kvCache() {
	r := a.Refusal
	need, have, fit := r.NeededBytes, r.AvailableBytes, r.FittingLen
	whose := "vLLM's own count"
	if need == nil && have != nil && fit > 0 {
		need = &units.Range{Low: scaled(have.Low, r.MaxModelLen, fit), Mid: scaled(have.Mid, r.MaxModelLen, fit), High: scaled(have.High, r.MaxModelLen, fit)}
	}
	if fit == 0 && need != nil && have != nil && need.High > 0 {
		fit = scaled(r.MaxModelLen, have.Low, need.High) / vllmBlock * vllmBlock
		whose = "if every token takes as much"
	}
	tokens := units.Count(int64(r.MaxModelLen))
	if need == nil {
		a.decide(Capacity, Certain, "vLLM does not start: its KV cache holds %s tokens, and one request of max_model_len takes %s.", units.Count(int64(fit)), tokens)
	} else {
		gap := need.Sub(*have)
		a.report.Evidence.Available, a.report.Evidence.Gap = &have.Mid, &gap.Mid
		a.decide(Capacity, Certain, "vLLM does not start: one request of max_model_len=%s tokens needs %s of KV cache, and %s is left for it: %s too little.",
			tokens, units.Size(need.Mid), units.Size(have.Mid), units.Size(gap.Mid))
		if r.MaxModelLen > 0 {
			a.line("%s for %s tokens is %s a token; %s holds %s tokens (%s)", units.Size(need.Mid), tokens, units.Size(need.Mid/r.MaxModelLen), units.Size(have.Mid), units.Count(int64(fit)), whose)
		}
	}
	if fit > 0 {
		a.code("--max-model-len %d (max_model_len=%d): the longest request that fits, %s", fit, fit, whose)
	}
	if need != nil {
		a.share(need.Sub(*have))
		half := need.Mid / 2
		holds := fmt.Sprintf("fits into the %s", units.Size(have.Mid))
		if half > have.Mid {
			holds = fmt.Sprintf("is still more than the %s", units.Size(have.Mid))
		}
		a.code("--kv-cache-dtype fp8, if the cache has 16 bits now: half of it, %s, %s", units.Size(half), holds)
	}
	if r.MaxNumSeqs > 0 && fit > 0 {
		a.line("max_num_seqs=%s requests at a time share %s tokens of cache: %s each, others wait", units.Count(int64(r.MaxNumSeqs)), units.Count(int64(fit)), units.Count(int64(fit/r.MaxNumSeqs)))
	}
}

// scaled returns n * by / of, rounded down.
func scaled(n, by, of uint64) uint64 {
	hi, lo := bits.Mul64(n, by)
	if of == 0 || hi >= of {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(hi, lo, of)
	return quotient
}

// share says how much larger vLLM's share of the device must be.
func (a *textEvidence) share(more units.Range) {
	r := a.Refusal
	by := fmt.Sprintf("%s divided by the memory of the device", units.SizeUp(more.High))
	if r.TotalBytes == nil || r.TotalBytes.Low == 0 {
		a.code("a larger --gpu-memory-utilization: by at least %s", by)
		return
	}
	part := hundredthsUp(float64(more.High) / float64(r.TotalBytes.Low))
	if r.Utilization == 0 {
		a.code("--gpu-memory-utilization larger by %.2f: %s more of %s", part, units.SizeUp(more.High), units.Size(r.TotalBytes.Mid))
		return
	}
	share := hundredthsUp(r.Utilization + float64(more.High)/float64(r.TotalBytes.Low))
	if share > 1 {
		a.line("gpu_memory_utilization would have to be %.2f, %.2f + %.2f: more than the device has", share, r.Utilization, part)
		return
	}
	a.code("--gpu-memory-utilization %.2f instead of %.2f: %s more of %s, if nobody else holds it", share, r.Utilization, units.SizeUp(more.High), units.Size(r.TotalBytes.Mid))
}

// hundredthsUp rounds up to two decimals. What is one but for the error of
// floating point stays.
func hundredthsUp(x float64) float64 { return math.Ceil(100*x-1e-9) / 100 }

// noKVCache is for weights and activations that take all of vLLM's share.
func (a *textEvidence) noKVCache() {
	r := a.Refusal
	said := "vLLM does not start: weights, activations and CUDA graphs take all that gpu_memory_utilization allows, and nothing is left for the KV cache"
	if r.Utilization > 0 {
		said += fmt.Sprintf(" (gpu_memory_utilization=%v)", r.Utilization)
	}
	if r.ShortBytes != nil {
		said += fmt.Sprintf("; %s more would only just make it zero", units.Size(r.ShortBytes.Mid))
		a.report.Evidence.Gap = &r.ShortBytes.Mid
	}
	a.decide(Capacity, Likely, "%s.", said)
	a.alternative(External, "others held memory of the device while vLLM measured: it counts what they take as its own%s", a.lister())
	if r.ShortBytes != nil {
		a.share(*r.ShortBytes)
	} else {
		a.code("a larger --gpu-memory-utilization; the line \"Available KV cache memory\" of the log says by how much")
	}
	if r.BatchTokens > 0 {
		a.code("--max-num-batched-tokens %d, half of now: activations of the largest batch are half as large", r.BatchTokens/2)
	} else {
		a.code("smaller --max-num-batched-tokens and --max-num-seqs: the activations of the largest batch shrink with them")
	}
	a.code("fewer bytes of weights on this device: a quantized model, or --tensor-parallel-size 2, which halves them")
}

// deviceTaken is for a device of which less is free than vLLM is to use.
func (a *textEvidence) deviceTaken() {
	r := a.Refusal
	if r.FreeBytes == nil {
		a.decide(External, Open, "vLLM does not start: less of the device is free than gpu_memory_utilization asks for.")
		a.alternative(Unknown, "this process holds it itself")
		return
	}
	held, gap := r.TotalBytes.Sub(*r.FreeBytes), r.WantedBytes.Sub(*r.FreeBytes)
	e := &a.report.Evidence
	e.DeviceFree, e.DeviceTotal, e.External, e.Gap = &r.FreeBytes.Mid, &r.TotalBytes.Mid, &held.Mid, &gap.Mid
	a.decide(External, Likely, "vLLM does not start: gpu_memory_utilization=%v of the device is %s, but only %s of its %s is free: %s is held before vLLM has loaded anything%s.",
		r.Utilization, units.Size(r.WantedBytes.Mid), units.Size(r.FreeBytes.Mid), units.Size(r.TotalBytes.Mid), units.Size(held.Mid), a.lister())
	a.alternative(Unknown, "this process holds it itself: a model loaded before, or an earlier engine that was not shut down")
	a.code("give back %s: end the processes that hold the device", units.SizeUp(gap.High))
	if share := math.Floor(100*float64(r.FreeBytes.Low)/float64(r.TotalBytes.High)) / 100; share > 0 {
		a.code("--gpu-memory-utilization %.2f, if the model fits into %s", share, units.Size(uint64(share*float64(r.TotalBytes.Mid))))
	}
}

// offloaded is for a device map that does not get all of a model onto the GPU.
func (a *textEvidence) offloaded() {
	a.decide(Capacity, Likely, "transformers does not load the quantized model: by its estimate not all of it fits into the free memory of the GPUs, and device_map=\"auto\" puts the rest on the CPU or the disk.")
	a.alternative(External, "other processes hold memory of the device: the estimate goes by what is free%s", a.lister())
	a.alternative(Unknown, "the estimate is too careful: it leaves room, and counts some modules before they are quantized")
	a.code("device_map={\"\": 0}: all on one GPU, without the estimate; if it really does not fit, PyTorch's message has the numbers")
	a.code("max_memory={0: \"...GiB\"} with what nvidia-smi shows as free: the estimate takes less by itself")
	a.code("llm_int8_enable_fp32_cpu_offload=True and a device_map of your own: what is on the CPU stays in 32 bits, and slow")
}

// wrapped adds what a library made of the failed request that is explained.
func (a *textEvidence) wrapped() {
	r, before := a.Refusal, slices.Clone(a.report.Fixes)
	switch {
	case r == nil || a.Message == nil:
	case r.Kind == message.NoBatchSize:
		a.report.Summary += " accelerate had tried every batch size down to 1: " + batchOne + "."
		a.alternative(Unknown, keptReferences)
		if a.report.Confidence == Certain {
			a.report.Confidence = Likely
		}
	case r.Kind == message.SamplerWarmup:
		a.report.Summary += fmt.Sprintf(" vLLM was trying a batch of max_num_seqs=%s sequences.", units.Count(int64(r.Requests)))
		if there, _ := a.available(); there != nil && a.live != nil && a.segment != nil && a.segment.Low > 0 {
			// What the sampler asks for grows with the number of sequences.
			most := scaled(r.Requests, there.Sub(*a.live).Mid, a.segment.Mid)
			if most < r.Requests {
				a.code("--max-num-seqs %d or less: %s for %s sequences, and %s is not allocated", max(1, most), units.Size(a.segment.Mid), units.Count(int64(r.Requests)), units.Size(there.Sub(*a.live).Mid))
			}
		}
		a.code("a smaller --gpu-memory-utilization: the sampler works beside the KV cache, which takes the rest of that share")
		// What the user can type comes before what is said in bytes.
		typed := a.report.Fixes[len(before):]
		a.report.Fixes = append(slices.Clone(typed), before...)
	}
}
