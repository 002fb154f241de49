package message

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// The values of [Refusal.Kind].
const (
	// KVCacheTooSmall: vLLM's KV cache does not hold one request of full length.
	KVCacheTooSmall = "kv_cache_too_small"
	// NoKVCache: weights and activations leave vLLM nothing for the KV cache.
	NoKVCache = "no_kv_cache"
	// DeviceTaken: less is free at the start than vLLM is to use.
	DeviceTaken = "device_taken"
	// SamplerWarmup: vLLM ran out of memory when it tried its largest batch.
	SamplerWarmup = "sampler_warmup"
	// ModelOffloaded: the device map of transformers puts modules on the CPU or the disk.
	ModelOffloaded = "model_offloaded"
	// NoBatchSize: accelerate found no batch size that fits.
	NoBatchSize = "no_batch_size"
)

// Refusal is an error of a library that found memory too small by its own
// reckoning. What it does not say is nil, 0 or, of Device and Rank, -1; some of it
// is taken from the lines that the library logged before.
type Refusal struct {
	Kind    string
	Library string // vLLM, transformers, accelerate
	Device  int

	MaxModelLen    uint64       // tokens of the longest request
	FittingLen     uint64       // tokens that the KV cache holds, or the longest request that fits, as vLLM reckons
	NeededBytes    *units.Range // of the KV cache for one request of MaxModelLen
	AvailableBytes *units.Range // for the KV cache
	ShortBytes     *units.Range // what is missing before there is any KV cache

	Utilization             float64      // gpu_memory_utilization
	WantedBytes             *units.Range // that share of the device
	FreeBytes, TotalBytes   *units.Range // of the device
	Requests                uint64       // in the largest batch
	MaxNumSeqs, BatchTokens uint64       // max_num_seqs, max_num_batched_tokens

	Traceback []Frame
	Text      string
	Line      int
	Rank, PID int
	Time      time.Time

	start int // in the text
}

// reason is one wording of a refusal.
type reason struct {
	kind, from, pattern string
	set                 func(*Refusal, found)
	parts               []part
}

// reasons are all wordings. Those without numbers count only where Python prints
// them as raised: tracebacks quote them as source, too.
var reasons = func() []reason {
	all := []reason{
		{NoKVCache, "vLLM", "no available memory for the cache blocks", nil, nil},
		{KVCacheTooSmall, "vLLM", "the model's max seq len (%d) is larger than the maximum number of tokens that can be stored in kv cache (%d)", func(r *Refusal, f found) {
			r.MaxModelLen, r.FittingLen = f.numbers[0], f.numbers[1]
		}, nil},
		{SamplerWarmup, "vLLM", "cuda out of memory occurred when warming up sampler with %d dummy requests", func(r *Refusal, f found) { r.Requests = f.numbers[0] }, nil},
		{ModelOffloaded, "transformers", "some modules are dispatched on the cpu or the disk", nil, nil},
		{NoBatchSize, "accelerate", "no executable batch size found, reached zero", nil, nil},
	}
	for _, model := range []string{"model's", "models's"} {
		for _, open := range []string{"", "("} {
			all = append(all, reason{
				KVCacheTooSmall, "vLLM",
				"to serve at least one request with the " + model + " max seq len (%d), " + open + "%s kv cache is needed, which is larger than the available kv cache memory (%s)",
				func(r *Refusal, f found) {
					r.MaxModelLen, r.NeededBytes, r.AvailableBytes = f.numbers[0], &f.sizes[0], &f.sizes[1]
				}, nil,
			})
		}
	}
	for _, device := range []string{"", "cuda:%d ", "xpu:%d ", "npu:%d ", "hpu:%d "} {
		all = append(all, reason{
			DeviceTaken, "vLLM", "free memory on device " + device + "(%f/%s) on startup is less than desired gpu memory utilization (%f, %s)",
			func(r *Refusal, f found) {
				if len(f.numbers) > 0 {
					r.Device = int(f.numbers[0])
				}
				if free, err := units.ParseRounded(f.decimals[0] + " GiB"); err == nil {
					r.FreeBytes = &free
				}
				r.TotalBytes, r.WantedBytes = &f.sizes[0], &f.sizes[1]
				r.Utilization, _ = strconv.ParseFloat(f.decimals[1], 64)
			}, nil,
		})
	}
	for i := range all {
		all[i].parts = compile(all[i].pattern)
	}
	return all
}()

// refusalStems are words of every refusal, as they are printed.
var refusalStems = []string{
	"request with the model", "cache blocks", "stored in KV", "desired GPU memory", "warming up sampler", "the CPU or the disk", "executable batch size",
}

// ParseRefusals finds the errors in which vLLM, transformers or accelerate say
// that memory is too small, in order.
func ParseRefusals(text string) []*Refusal {
	var at []int
	for _, stem := range refusalStems {
		at = appendAll(at, text, stem, 0, len(text))
	}
	slices.Sort(at)
	var all []*Refusal
	done, line, counted := 0, 1, 0
	for _, anchor := range at {
		const before, after = 512, 2048
		from, to := max(done, anchor-before), min(len(text), anchor+after)
		if anchor < done {
			continue
		}
		r, start, end := newWindow(text[from:to]).refusal(anchor - from)
		if r == nil {
			continue
		}
		start, done = from+start, from+end
		line += strings.Count(text[counted:start], "\n")
		counted = start
		r.Line, r.Text = line, strings.Join(strings.Fields(Plain(text[start:done])), " ")
		var by origin
		r.Traceback, by = traceback(text, start)
		r.Rank, r.PID, r.Time = by.rank, by.pid, by.time
		r.start = start
		all = append(all, r)
	}
	const last = 16 // that a long log is searched for again
	for _, r := range all[max(0, len(all)-last):] {
		r.engine(text[:r.start])
	}
	return all
}

// refusal returns the first refusal that covers the offset anchor, and its place.
func (w *window) refusal(anchor int) (r *Refusal, start, end int) {
	for at := range len(w.text) {
		if offset(w.squeezed, w.plain, at) > anchor {
			return nil, 0, 0
		}
		for _, why := range reasons {
			if c := why.parts[0].words[0]; w.text[at] != c {
				continue
			}
			f, ok := match(why.parts, w.text, at)
			if !ok {
				continue
			}
			start, end = offset(w.squeezed, w.plain, at), offset(w.squeezed, w.plain, f.end-1)+1
			if _, raised := w.exception(start); end <= anchor || why.set == nil && !raised {
				continue
			}
			r = &Refusal{Kind: why.kind, Library: why.from, Device: -1}
			if why.set != nil {
				why.set(r, f)
			}
			w.estimate(r, f.end)
			return r, start, end
		}
	}
	return nil, 0, 0
}

var estimated = compile("the estimated maximum model length is %d")

// estimate reads the length that vLLM reckons to fit, a sentence or two later.
func (w *window) estimate(r *Refusal, from int) {
	for at := from; at < min(len(w.text), from+gap); at++ {
		if f, ok := match(estimated, w.text, at); ok {
			r.FittingLen = f.numbers[0]
			return
		}
	}
}

// What vLLM logs before it gives up, in the wordings of its versions.
var (
	engineShare = regexp.MustCompile(`gpu[_-]memory[_-]utilization['"]?(?: ?[=:] ?| \(| )['"]?(0?\.\d+|1(?:\.0+)?)\b`)
	engineTotal = regexp.MustCompile(`total_gpu_memory ?(?:=|\()(\d+\.?\d*) ?Gi?B`)
	engineKV    = regexp.MustCompile(`(?:Available KV cache memory: |reserved for KV Cache is |kv_cache_size=)(-?\d+\.?\d*) ?Gi?B`)
	engineSeqs  = regexp.MustCompile(`max[_-]num[_-]seqs['"]?(?: ?[=:] ?| )(\d{1,7})\b`)
	engineBatch = regexp.MustCompile(`max[_-]num[_-]batched[_-]tokens['"]?(?: ?[=:] ?| )(\d{1,8})\b`)
)

// engine takes what the log says before a refusal and the refusal does not.
func (r *Refusal) engine(log string) {
	if r.Library != "vLLM" {
		return
	}
	if text := lastMatch(log, engineShare, "memory_utilization", "memory-utilization"); text != "" && r.Utilization == 0 {
		r.Utilization, _ = strconv.ParseFloat(text, 64)
	}
	size := func(text string) *units.Range {
		if n, err := units.ParseRounded(text + " GiB"); text != "" && err == nil {
			return &n
		}
		return nil
	}
	if r.TotalBytes == nil {
		r.TotalBytes = size(lastMatch(log, engineTotal, "total_gpu_memory"))
	}
	if kv := lastMatch(log, engineKV, "KV cache memory: ", "for KV Cache is ", "kv_cache_size="); strings.HasPrefix(kv, "-") {
		r.ShortBytes = size(kv[1:])
	} else if r.AvailableBytes == nil {
		r.AvailableBytes = size(kv)
	}
	r.MaxNumSeqs, _ = strconv.ParseUint(lastMatch(log, engineSeqs, "max_num_seqs", "max-num-seqs"), 10, 64)
	r.BatchTokens, _ = strconv.ParseUint(lastMatch(log, engineBatch, "max_num_batched_tokens", "max-num-batched-tokens"), 10, 64)
}

// lastMatch returns what the pattern captures where one of the words stands last;
// empty if it does not.
func lastMatch(log string, pattern *regexp.Regexp, words ...string) string {
	at := -1
	for _, w := range words {
		at = max(at, strings.LastIndex(log, w))
	}
	if at < 0 {
		return ""
	}
	const before, after = 24, 80
	m := pattern.FindStringSubmatch(log[max(0, at-before):min(len(log), at+after)])
	if m == nil {
		return ""
	}
	return m[1]
}
