package explain

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/trace"
)

// TestAfterUpgrade: a setting that helps but that the PyTorch of the file does not
// know is no fix; it stands apart.
func TestAfterUpgrade(t *testing.T) {
	short.Skip(t)
	expandable := func(f Fix) bool { return strings.Contains(f.Settings, "expandable_segments") }
	run := checked(t, "snapshots/gpt2_fixed-tight-default")
	for _, tt := range []struct {
		platform string
		version  pytorch.Version
		requires string
	}{
		{"", pytorch.Default, ""},
		{"", pytorch.Oldest, "expandable_segments needs PyTorch 2.1 or later; this is 2.0"},
		{trace.ROCm, pytorch.Default, "expandable_segments needs PyTorch 2.12 or later on ROCm; this is 2.11"},
	} {
		run.Trace.Platform, run.Trace.Writer = tt.platform, pytorch.Exactly(tt.version)
		r, err := FromSnapshot(context.Background(), Input{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		now, later := slices.ContainsFunc(r.Fixes, expandable), slices.ContainsFunc(r.AfterUpgrade, expandable)
		if now != (tt.requires == "") || later == now {
			t.Errorf("%s %v: offered %v, after an upgrade %v", tt.platform, tt.version, now, later)
		}
		for _, f := range r.AfterUpgrade {
			if f.Requires != tt.requires {
				t.Errorf("%s %v: %s requires %q", tt.platform, tt.version, f.Settings, f.Requires)
			}
		}
		for _, n := range r.Notes {
			if strings.Contains(n, "the request fails with it, too") {
				t.Errorf("%s %v: %s", tt.platform, tt.version, n)
			}
		}
	}
}

// TestMessagePlatforms: what a message of another back end is told first, and that
// nothing is offered that does not exist there.
func TestMessagePlatforms(t *testing.T) {
	const rest = " 1.88 GiB. GPU 0 has a total capacity of 23.98 GiB of which 1.70 GiB is free. Of the allocated memory 19.65 GiB is allocated by PyTorch, and 2.28 GiB is reserved by PyTorch but unallocated."
	for _, tt := range []struct{ text, warning, first, later string }{
		{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" + rest, "", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", ""},
		{"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.88 GiB (GPU 0; 23.98 GiB total capacity; 19.65 GiB already allocated; 1.70 GiB free; 21.93 GiB reserved in total by PyTorch)", "", "", "needs PyTorch 2.1"},
		{"torch.OutOfMemoryError: HIP out of memory. Tried to allocate" + rest + " If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)", "", "", "2.12 or later on ROCm"},
		{"torch.OutOfMemoryError: XPU out of memory. Tried to allocate" + rest, "Intel's allocator (XPU) is not modelled in full", "export PYTORCH_ALLOC_CONF=expandable_segments:True", ""},
		{"RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 2; 60.97 GiB total capacity; 58.07 GiB already allocated; 58.07 GiB current active; 16.54 MiB free; 60.06 GiB reserved in total by PyTorch)", "Ascend's allocator (torch_npu)", "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", ""},
		{"RuntimeError: MPS backend out of memory (MPS allocated: 15.05 GB, other allocations: 11.91 GB, max allowed: 27.20 GB). Tried to allocate 1.16 GB on private pool.", "Apple's allocator (MPS) is not modelled", "", ""},
		{"RuntimeError: Invalid buffer size: 19.45 GB", "Apple's allocator (MPS) is not modelled", "", ""},
		{"RuntimeError: level_zero backend failed with error: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)", "Intel's allocator (XPU)", "", ""},
	} {
		all, err := message.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := FromText(Input{Message: all[0]})
		if err != nil {
			t.Fatal(err)
		}
		first, later := "", ""
		if len(r.Fixes) > 0 {
			first = r.Fixes[0].Export
		}
		if len(r.AfterUpgrade) > 0 {
			later = r.AfterUpgrade[0].Requires
		}
		if !strings.HasPrefix(r.Warning, tt.warning) || (r.Warning == "") != (tt.warning == "") || first != tt.first || !strings.Contains(later, tt.later) || (later == "") != (tt.later == "") {
			t.Errorf("%.60s: warning %q, first %q, later %q", tt.text, r.Warning, first, later)
		}
		for _, f := range r.Fixes {
			if tt.warning != "" && strings.Contains(f.Code+f.Export, "CUDA") || f.Code == "nvidia-smi" && tt.warning != "" {
				t.Errorf("%.60s: %+v", tt.text, f)
			}
		}
	}
}
