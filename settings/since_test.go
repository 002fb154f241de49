package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// TestSince pins which release knows which key first.
func TestSince(t *testing.T) {
	for key, want := range map[string]string{
		"max_split_size_mb": "0.0", "garbage_collection_threshold": "0.0", "roundup_power2_divisions": "0.0", "backend": "0.0",
		"expandable_segments":        "2.1",
		"release_lock_on_cudamalloc": "2.2", "release_lock_on_hipmalloc": "2.2", "pinned_use_cuda_host_register": "2.2", "pinned_num_register_threads": "2.2",
		"max_non_split_rounding_mb": "2.6", "pinned_use_background_threads": "2.6",
		"graph_capture_record_stream_reuse": "2.9",
		"per_process_memory_fraction":       "2.10", "pinned_reserve_segment_size_mb": "2.10",
		"large_segment_size_mb":   "2.11",
		"throw_on_cudamalloc_oom": "2.12", "pinned_free_catch_all": "2.12",
		"no_such_key": "0.0",
	} {
		if got := Since(key); got.String() != want {
			t.Errorf("%s: since %v, want %s", key, got, want)
		}
	}
	for i := range options {
		if o := &options[i]; o.since > pytorch.Default {
			t.Errorf("%s is modelled, but of %v", o.key, o.since)
		}
	}
}

func TestKeys(t *testing.T) {
	for conf, want := range map[string]string{
		"": "", "large_segment_size_mb:20,expandable_segments:False": "",
		"garbage_collection_threshold:0.8,max_split_size_mb:128":        "max_split_size_mb garbage_collection_threshold",
		"roundup_power2_divisions:[256:1,>:4],expandable_segments:True": "roundup_power2_divisions expandable_segments",
	} {
		s, err := Parse(conf)
		if got := strings.Join(s.Keys(), " "); err != nil || got != want {
			t.Errorf("%q: %q, %v", conf, got, err)
		}
	}
}

// TestParseKnown: an unknown key is left out with its value, wherever it stands;
// what is wrong otherwise is still an error.
func TestParseKnown(t *testing.T) {
	for _, tt := range []struct {
		conf, want string
		skipped    []string
	}{
		{"max_split_size_mb:128", "max_split_size_mb:128", nil},
		{"throw_on_cudamalloc_oom:True,max_split_size_mb:128", "max_split_size_mb:128", []string{"throw_on_cudamalloc_oom"}},
		{"max_split_size_mb:128,foo:[1:2,>:3],expandable_segments:True", "max_split_size_mb:128,expandable_segments:True", []string{"foo"}},
		{"foo,max_split_size_mb:128,bar", "max_split_size_mb:128", []string{"foo", "bar"}},
		{"foo:", "", []string{"foo"}},
		{"foo:[1:2", "", []string{"foo"}},
		{"foo:1,large_segment_size_mb:64,max_split_size_mb:64", "large_segment_size_mb:64,max_split_size_mb:64", []string{"foo"}},
	} {
		s, skipped, err := ParseKnown(tt.conf)
		if err != nil || s.String() != tt.want || !slices.Equal(skipped, tt.skipped) {
			t.Errorf("%q: %q, %q left out, %v", tt.conf, s, skipped, err)
		}
	}
	if s, skipped, err := ParseKnown("expandable_segments:True,foo:1,max_split_size_mb:1"); err == nil || !s.ExpandableSegments || len(skipped) != 1 {
		t.Errorf("%q, %q, %v", s, skipped, err)
	}
}
