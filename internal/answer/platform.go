package answer

import (
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/trace"
)

// platforms are those of [message.OOM], by platform or library, that are not CUDA.
var platforms = map[string]string{
	"HIP": trace.ROCm, "XPU": trace.XPU, "Level Zero": trace.XPU, "NPU": trace.NPU, "MPS": "MPS", "MUSA": "MUSA",
}

// PlatformOf returns what ran out of memory by a message, as in [trace.Trace]; MPS
// and MUSA, which write no snapshots, have their own names.
func PlatformOf(o *message.OOM) string {
	if o == nil {
		return ""
	}
	if p := platforms[o.Library]; p != "" {
		return p
	}
	return platforms[o.Platform]
}

// inMessages says what is not modelled of the allocators that messages come from.
// CUDA and ROCm have one.
var inMessages = map[string]string{
	"MPS":     "Apple's allocator (MPS) is not modelled: only the numbers of the message are used.",
	"MUSA":    "Moore Threads' allocator (MUSA), a fork of PyTorch's, is not modelled: the arithmetic is CUDA's.",
	trace.XPU: "Intel's allocator (XPU) is not modelled in full: the arithmetic is CUDA's, and few settings have an effect there.",
	trace.NPU: "Ascend's allocator (torch_npu), a fork of PyTorch's, is not modelled: the arithmetic is CUDA's.",
}

// MessageWarning says in a sentence what is not modelled of the allocator that a
// message comes from; empty for CUDA and ROCm.
func MessageWarning(o *message.OOM) string { return inMessages[PlatformOf(o)] }
