package stats

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// Reading is a statistic in words: what it is, and whether it is a problem.
type Reading struct {
	Statistic string `json:"statistic"` // as memory_stats() calls it, or how it is computed from these
	Value     string `json:"value"`     // as it is written
	Means     string `json:"means"`
	Problem   string `json:"problem"` // ProblemNo, ProblemMaybe or ProblemYes
	Why       string `json:"why"`
}

// Whether a statistic is a problem.
const (
	ProblemNo    = "no"
	ProblemMaybe = "maybe"
	ProblemYes   = "yes"
)

// reader makes readings from the values of memory_stats().
type reader struct {
	get func(key string) *units.Range // nil if it is not known
	out []Reading
}

// readings judges what is known. The rules are in docs/stats.md.
func readings(get func(key string) *units.Range) []Reading {
	r := &reader{get: get, out: []Reading{}}
	r.failures()
	r.cache()
	r.loss()
	r.driver()
	return r.out
}

func (r *reader) add(statistic, value, means, problem, why string) {
	r.out = append(r.out, Reading{statistic, value, means, problem, why})
}

// count returns a counter; false if it is not known.
func (r *reader) count(key string) (uint64, bool) {
	v := r.get(key)
	if v == nil {
		return 0, false
	}
	return v.Mid, true
}

// pressed reports whether memory was short: a request failed, or passed only
// after the cache was released.
func (r *reader) pressed() bool {
	retries, _ := r.count("num_alloc_retries")
	ooms, _ := r.count("num_ooms")
	return retries+ooms > 0
}

func (r *reader) failures() {
	if n, ok := r.count("num_ooms"); ok {
		problem, why := ProblemNo, "none failed"
		if n > 0 {
			problem, why = ProblemYes, "ashlar explain says why"
		}
		r.add("num_ooms", units.Count(int64(n)), "requests that failed with OutOfMemoryError", problem, why)
	}
	if n, ok := r.count("num_alloc_retries"); ok {
		problem, why := ProblemNo, "memory was never full"
		if n > 0 {
			problem, why = ProblemYes, "the device or the limit was full; each time the device was waited for and the cache had to be filled again"
		}
		r.add("num_alloc_retries", units.Count(int64(n)), "requests that were served only after the whole cache was given back", problem, why)
	}
}

func (r *reader) cache() {
	reserved, allocated, active := r.get("reserved_bytes.all.current"), r.get("allocated_bytes.all.current"), r.get("active_bytes.all.current")
	if reserved == nil || allocated == nil {
		return
	}
	r.add("reserved_bytes.all.current", units.Size(reserved.Mid), "what PyTorch holds of the device; nvidia-smi shows it and CUDA's context", ProblemNo, "the peak of it decides whether a job fits")
	r.add("allocated_bytes.all.current", units.Size(allocated.Mid), "what tensors occupy", ProblemNo, "only this shrinks when tensors are deleted")
	idle := reserved.Sub(*allocated).Mid
	problem, why := ProblemNo, "the next requests are served from it without the driver"
	if idle > 0 && r.pressed() {
		problem, why = ProblemMaybe, "memory was short while this much was not in use: it may have been in pieces"
	}
	r.add("reserved - allocated", units.Size(idle), "the cache: freed memory that is kept for reuse", problem, why)
	if active != nil && active.Mid > allocated.Mid {
		r.add("active - allocated", units.Size(active.Mid-allocated.Mid), "freed by the program, still used by another stream (record_stream)", ProblemMaybe,
			"it cannot be reused until that stream has passed; much of it means that streams run far apart")
	}
	if split := r.get("inactive_split_bytes.all.current"); split != nil {
		problem, why := ProblemNo, "it can serve requests that fit"
		if split.Mid > 0 && r.pressed() {
			problem, why = ProblemMaybe, "this part could not be given back when memory was short; expandable segments can give most of such pieces back"
		}
		r.add("inactive_split_bytes.all.current", units.Size(split.Mid), "free pieces beside pieces in use: empty_cache() cannot give them back", problem, why)
	}
}

// muchRounding is the part of active memory from which on rounding is worth a
// look: roundup_power2_divisions can cost that much, the 512-byte unit cannot.
const muchRounding = 0.1

func (r *reader) loss() {
	active, requested := r.get("active_bytes.all.current"), r.get("requested_bytes.all.current")
	if active == nil || requested == nil || active.Mid == 0 || requested.Mid == 0 {
		return
	}
	lost := active.Sub(*requested).Mid
	problem, why := ProblemNo, "requests are rounded to 512 B, and small rests are not split off"
	if float64(lost) > muchRounding*float64(active.Mid) {
		problem, why = ProblemMaybe, "more than a tenth: very small tensors, roundup_power2_divisions, or max_split_size_mb"
	}
	r.add("active - requested", units.Size(lost), "lost to rounding", problem, why)
}

func (r *reader) driver() {
	allocs, known := r.count("num_device_alloc")
	requests, counted := r.count("allocation.all.allocated")
	if known && counted && requests > 0 {
		rate := 1 - float64(allocs)/float64(max(requests, allocs))
		r.add("1 - num_device_alloc / allocation.all.allocated", fmt.Sprintf("%.2f %%", 100*rate), "requests that the cache served: the hit rate", ProblemNo,
			fmt.Sprintf("%s of %s requests went to the driver", units.Count(int64(allocs)), units.Count(int64(requests))))
	}
	if frees, ok := r.count("num_device_free"); ok {
		problem, why := ProblemNo, "nothing went back to the driver, so nothing had to be obtained again"
		switch {
		case frees > 0 && r.pressed():
			problem, why = ProblemMaybe, "the cache was released because memory was short, or by empty_cache()"
		case frees > 0:
			problem, why = ProblemMaybe, "empty_cache() or garbage collection: each such call waits for the device; ashlar whatif --empty-cache none shows the run without"
		}
		r.add("num_device_free", units.Count(int64(frees)), "segments given back to the driver", problem, why)
	}
	if n, ok := r.count("num_sync_all_streams"); ok && n > 0 {
		r.add("num_sync_all_streams", units.Count(int64(n)), "times that all streams were waited for, to release memory", ProblemMaybe, "the GPU idles meanwhile: outside of steps it does not matter")
	}
}
