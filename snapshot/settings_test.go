package snapshot

import (
	"fmt"
	"math"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
)

// Whatever the fields of allocator_settings have for values, those that are used
// are in range, and the others are named.
func TestSettingsOutOfRange(t *testing.T) {
	names := []string{
		"max_split_size", "garbage_collection_threshold", "per_process_memory_fraction", "expandable_segments", "release_lock_on_cudamalloc",
		"pinned_use_cuda_host_register", "pinned_use_background_threads", "graph_capture_record_stream_reuse", "pinned_num_register_threads",
		"large_segment_size", "max_non_split_rounding_size", "roundup_power2_divisions",
	}
	odd := map[string]bool{}
	for _, name := range names {
		for _, value := range []string{
			"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e308", "-0.5", "NaN", "Infinity", "-Infinity",
			`"1"`, "true", "null", "[]", "{}", `{"1": -1, "65536": 9223372036854775807}`,
		} {
			f, err := read1([]byte(fmt.Sprintf(`{"segments": [%s], "allocator_settings": {%q: %s}}`, goodSegment, name, value)))
			if err != nil {
				t.Errorf("%s = %s: %v", name, value, err)
				continue
			}
			odd[name] = odd[name] || len(f.Warnings) > 0
			s := f.Traces[0].Settings.Parsed
			for _, x := range []float64{s.GarbageCollectionThreshold, s.PerProcessMemoryFraction} {
				if math.IsNaN(x) || x < 0 || x > 1 {
					t.Errorf("%s = %s: a fraction of %g", name, value, x)
				}
			}
			sizes := append([]uint64{s.LargeSegmentSize, s.MaxNonSplitRounding, s.PinnedNumRegisterThreads, s.MaxSplitSize}, s.RoundupPower2Divisions[:]...)
			for _, n := range sizes {
				if n > maxSize && n != settings.None {
					t.Errorf("%s = %s: %d", name, value, n)
				}
			}
		}
	}
	for _, name := range []string{
		"garbage_collection_threshold", "per_process_memory_fraction", "pinned_num_register_threads", "large_segment_size",
		"max_non_split_rounding_size", "roundup_power2_divisions",
	} {
		if !odd[name] {
			t.Errorf("%s: nothing is said about values out of range", name)
		}
	}
}
