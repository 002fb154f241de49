package answer

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// Allocator is what is known of the allocator that an answer is about.
type Allocator struct {
	Platform string // as in [trace.Trace]
	Writer   pytorch.Range
}

// AllocatorOf returns the allocator that wrote a trace.
func AllocatorOf(t *trace.Trace) Allocator { return Allocator{t.Platform, t.Writer} }

// Use says whether settings can be offered.
type Use int

// What settings need.
const (
	Now   Use = iota
	Later     // an upgrade of PyTorch
	Never     // another device
)

// takes are the keys that allocators other than PyTorch's for CUDA know.
var takes = map[string][]string{
	trace.XPU: {"expandable_segments", "large_segment_size_mb"},
	trace.NPU: {"expandable_segments", "max_split_size_mb", "garbage_collection_threshold"},
}

// Takes says whether the allocator takes settings, and what they need otherwise.
// If the version is not known for certain they may be used, and needs names the
// release that they ask for.
func (a Allocator) Takes(s settings.Settings) (use Use, needs string) {
	key, since := "", pytorch.Version(0)
	for _, k := range s.Keys() {
		if known, other := takes[a.Platform]; other && !slices.Contains(known, k) {
			return Never, fmt.Sprintf("%s has no effect on %s", k, deviceOf[a.Platform])
		}
		if v := a.since(k); v > since {
			key, since = k, v
		}
	}
	switch {
	case since == 0 || a.Writer.Since(since):
		return Now, ""
	case a.Writer.Before(since):
		return Later, fmt.Sprintf("%s needs PyTorch %v or later%s; this is %v", key, since, a.where(), a.Writer)
	case !a.Writer.Known() && since < pytorch.Default:
		return Now, "" // nearly everybody has it
	}
	before := "refuse to start with"
	if a.Platform == trace.ROCm && key == "expandable_segments" {
		before = "ignore"
	}
	return Now, fmt.Sprintf("%s needs PyTorch %v or later%s; earlier ones %s it", key, since, a.where(), before)
}

// rocmExpandable is the first release with expandable segments on ROCm; earlier
// ones ignore the key.
var rocmExpandable = pytorch.Of(2, 12)

func (a Allocator) since(key string) pytorch.Version {
	switch {
	case a.Platform == trace.NPU:
		return 0 // torch_npu has its own history
	case a.Platform == trace.ROCm && key == "expandable_segments":
		return rocmExpandable
	}
	return settings.Since(key)
}

func (a Allocator) where() string {
	if a.Platform == trace.ROCm {
		return " on ROCm"
	}
	return ""
}

// Export is the line of a shell that puts settings into force.
func (a Allocator) Export(s settings.Settings) string {
	switch a.Platform {
	case trace.NPU:
		return s.ExportAs("PYTORCH_NPU_ALLOC_CONF")
	case trace.XPU:
		return s.ExportAs("PYTORCH_ALLOC_CONF")
	}
	return s.Export()
}

// Lister is the command that lists the processes on a device.
func (a Allocator) Lister() string {
	switch a.Platform {
	case trace.ROCm:
		return "rocm-smi"
	case trace.XPU:
		return "xpu-smi"
	case trace.NPU:
		return "npu-smi"
	}
	return "nvidia-smi"
}

var deviceOf = map[string]string{trace.XPU: "an Intel XPU", trace.NPU: "an Ascend NPU"}
