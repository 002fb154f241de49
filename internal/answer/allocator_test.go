package answer

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

func TestTakes(t *testing.T) {
	of := func(platform string, first, last int) Allocator {
		return Allocator{platform, pytorch.Range{First: pytorch.Version(first), Last: pytorch.Version(last)}}
	}
	for _, tt := range []struct {
		a     Allocator
		conf  string
		use   Use
		needs string
	}{
		{of("", 200, 200), "max_split_size_mb:128", Now, ""},
		{of("", 200, 200), "expandable_segments:True", Later, "expandable_segments needs PyTorch 2.1 or later; this is 2.0"},
		{of("", 205, 207), "expandable_segments:True", Now, ""},
		{of("", 205, 207), "large_segment_size_mb:32,expandable_segments:True", Later, "large_segment_size_mb needs PyTorch 2.11 or later; this is 2.5 to 2.7"},
		{of("", 205, 207), "max_split_size_mb:64,max_non_split_rounding_mb:64", Now, "max_non_split_rounding_mb needs PyTorch 2.6 or later; earlier ones refuse to start with it"},
		{of("", 210, 211), "large_segment_size_mb:32", Now, "large_segment_size_mb needs PyTorch 2.11 or later; earlier ones refuse to start with it"},
		{of("", 211, 211), "large_segment_size_mb:32", Now, ""},
		{of("", 0, 0), "expandable_segments:True", Now, ""},
		{of(trace.ROCm, 210, 211), "expandable_segments:True", Later, "expandable_segments needs PyTorch 2.12 or later on ROCm; this is 2.10 to 2.11"},
		{of(trace.ROCm, 212, 213), "expandable_segments:True", Now, ""},
		{of(trace.XPU, 211, 213), "expandable_segments:True", Now, ""},
		{of(trace.XPU, 211, 213), "max_split_size_mb:128", Never, "max_split_size_mb has no effect on an Intel XPU"},
		{of(trace.NPU, 0, 0), "roundup_power2_divisions:4", Never, "roundup_power2_divisions has no effect on an Ascend NPU"},
		{of(trace.NPU, 0, 0), "max_split_size_mb:128,expandable_segments:True", Now, ""},
	} {
		s, err := settings.Parse(tt.conf)
		if err != nil {
			t.Fatal(err)
		}
		if use, needs := tt.a.Takes(s); use != tt.use || needs != tt.needs {
			t.Errorf("%+v, %s: %v, %q", tt.a, tt.conf, use, needs)
		}
	}
	s, _ := settings.Parse("expandable_segments:True")
	for platform, want := range map[string]string{"": "PYTORCH_CUDA_ALLOC_CONF=", trace.ROCm: "PYTORCH_CUDA_ALLOC_CONF=", trace.XPU: "export PYTORCH_ALLOC_CONF=", trace.NPU: "PYTORCH_NPU_ALLOC_CONF="} {
		if got := of(platform, 0, 0).Export(s); !strings.Contains(got, want) {
			t.Errorf("%s: %s", platform, got)
		}
	}
}
