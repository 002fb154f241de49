package stats

import (
	"slices"
	"sync"
)

// The parts of the keys of memory_stats() (spec 9.1).
var (
	pooled = []string{
		"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes",
	}
	unpooled = []string{"oversize_allocations", "oversize_segments"}
	pools    = []string{"all", "large_pool", "small_pool"}
	fields   = []string{"current", "peak", "allocated", "freed"}
	counters = []string{"num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size"}
)

// Keys returns the flat keys of memory_stats() in PyTorch 2.11, sorted as it
// prints them.
func Keys() []string { return slices.Clone(sortedKeys()) }

var sortedKeys = sync.OnceValue(func() []string {
	keys := slices.Clone(counters)
	for _, field := range fields {
		for _, family := range unpooled {
			keys = append(keys, family+"."+field)
		}
		for _, family := range pooled {
			for _, pool := range pools {
				keys = append(keys, family+"."+pool+"."+field)
			}
		}
	}
	slices.Sort(keys)
	return keys
})

func known(key string) bool {
	_, ok := slices.BinarySearch(sortedKeys(), key)
	return ok
}

func family(name string) bool {
	return slices.Contains(pooled, name) || slices.Contains(unpooled, name)
}
