package snapshot

import (
	"strings"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// platform says what a file was recorded on, as far as it shows it: by what our
// recorder noted, by keys that only one writer has, by functions in call stacks.
func (b *builder) platform(p *parts) string {
	fields := p.settings.Fields
	switch {
	case b.profiled():
		return trace.Profiler
	case hipNoted(p.extra), fields.Has("PYTORCH_HIP_ALLOC_CONF"), fields.Has("release_lock_on_hipmalloc"), fields.Has("pinned_use_hip_host_register"):
		return trace.ROCm
	case fields.Has("PYTORCH_ALLOC_CONF") && !fields.Has("PYTORCH_CUDA_ALLOC_CONF"):
		return trace.XPU // torch/csrc/xpu/Module.cpp; that for CUDA writes the other name
	case b.withoutPool(p):
		return trace.NPU
	}
	return b.platformOfStacks()
}

// hipNoted reports whether our recorder saw a PyTorch for ROCm.
func hipNoted(extra trace.Extra) bool {
	facts, _ := extra.Get(recorder.Key).(trace.Extra)
	hip, _ := facts.Get("hip").(string)
	torch, _ := facts.Get("torch").(string)
	return hip != "" || strings.Contains(torch, "+rocm")
}

// profiled reports whether the events have the categories that profile_plot adds.
func (b *builder) profiled() bool {
	for _, x := range b.events.Extra {
		if x.Has("category") {
			return true
		}
	}
	return false
}

// withoutPool reports whether segments say whether they are expandable but not to
// which pool they belong. PyTorch has written both since 2.1, and neither before;
// torch_npu writes the first alone.
func (b *builder) withoutPool(p *parts) bool {
	if total(p.segments) == 0 || p.settings.Known || p.annotated {
		return false
	}
	row := &b.segments.slice(p.segments[0].first, 1)[0]
	return row.saysExpandable && !row.HasPool
}

// inStacks are beginnings of functions that only one platform has.
var inStacks = []struct{ function, platform string }{
	{"c10_npu::", trace.NPU}, {"c10::xpu::", trace.XPU}, {"c10::hip::", trace.ROCm}, {"at::hip::", trace.ROCm},
}

func (b *builder) platformOfStacks() string {
	for i := range b.stacks.NumFrames() {
		name := b.strings.Text(b.stacks.Frame(trace.FrameID(i)).Name)
		for _, s := range inStacks {
			if strings.HasPrefix(name, s.function) {
				return s.platform
			}
		}
	}
	return ""
}

// writerOn narrows the versions that may have written a file by what it was
// recorded on. torch_npu and the profiler have formats of their own, which do not
// show the version of PyTorch.
func writerOn(platform string, r pytorch.Range) pytorch.Range {
	switch platform {
	case trace.XPU:
		return pytorch.Range{First: pytorch.Of(2, 11), Last: pytorch.Newest} // the first with a history
	case trace.NPU, trace.Profiler:
		return pytorch.Range{}
	}
	return r
}
