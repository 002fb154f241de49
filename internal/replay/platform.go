package replay

import "github.com/ashlar-mem/ashlar/trace"

// notModelled says what of a platform the engine does not model.
var notModelled = map[string]string{
	trace.ROCm: "Recorded on ROCm: the allocator has CUDA's rules; driver times are those of an H200, and expandable segments need PyTorch 2.12 and ROCm 7.",
	trace.XPU: "Recorded on an Intel XPU, which is not modelled in full: sizes are as on CUDA, but of the settings only expandable_segments and " +
		"large_segment_size_mb have an effect, and the driver is another.",
	trace.NPU: "Recorded on an Ascend NPU, whose allocator (torch_npu, a fork of PyTorch's) is not modelled: the file's numbers hold; replays, and what they advise, are estimates.",
	trace.Profiler: "Made by profile_plot from tensors that torch.profiler saw: no allocator wrote it, so there is nothing to replay, reserved memory means little, " +
		"and the last device is the CPU.",
}

// NotModelled says in a sentence or two what the engine does not model of a
// trace's platform; empty for CUDA.
func NotModelled(t *trace.Trace) string { return notModelled[t.Platform] }
