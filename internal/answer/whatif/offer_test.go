package whatif

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// TestOffer: settings say what they need of the PyTorch, and of the device, that
// wrote the file.
func TestOffer(t *testing.T) {
	c := program(t, "snapshots/ckpt_spike-tight-default.pickle.gz")
	q := question(c, setting(t, "expandable_segments:True"), setting(t, "large_segment_size_mb:32"), setting(t, "throw_on_cudamalloc_oom:True,max_split_size_mb:128"))
	for _, tt := range []struct {
		platform       string
		first, last    int
		want, variable string
	}{
		{"", 211, 211, "now now now now", "PYTORCH_CUDA_ALLOC_CONF"},
		{"", 205, 207, "now now after_upgrade now", "PYTORCH_CUDA_ALLOC_CONF"},
		{"", 200, 200, "now after_upgrade after_upgrade now", "PYTORCH_CUDA_ALLOC_CONF"},
		{trace.ROCm, 210, 211, "now after_upgrade now now", "PYTORCH_CUDA_ALLOC_CONF"},
		{trace.XPU, 211, 213, "now now now never", "PYTORCH_ALLOC_CONF"},
		{trace.NPU, 0, 0, "now now never now", "PYTORCH_NPU_ALLOC_CONF"},
	} {
		c.Trace.Platform, c.Trace.Writer = tt.platform, pytorch.Range{First: pytorch.Version(tt.first), Last: pytorch.Version(tt.last)}
		a, err := Ask(t.Context(), c, q)
		if err != nil {
			t.Fatal(err)
		}
		var after []string
		for _, r := range a.Results {
			after = append(after, r.After)
			if (r.After != AfterNothing) && r.Needs == "" || !strings.Contains(r.Export, " "+tt.variable) {
				t.Errorf("%s: %+v", tt.platform, r)
			}
		}
		if got := strings.Join(after, " "); got != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.platform, c.Trace.Writer, got, tt.want)
		}
		if notes := strings.Join(a.Notes, "\n"); !strings.Contains(notes, "throw_on_cudamalloc_oom (of PyTorch 2.12); the rest holds") {
			t.Errorf("%s", notes)
		}
	}
	if _, err := ParseSetting("throw_on_cudamalloc_oom:True,expandable_segment:True"); err == nil {
		t.Error("a misspelt key was taken")
	}
}
