package snapshot

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/trace"
)

// TestPlatform: what a file was recorded on shows in what its writer wrote.
func TestPlatform(t *testing.T) {
	const (
		event   = `{"action": "alloc", "addr": 4096, "size": 512, "stream": 0}`
		segment = `{"device": 0, "address": 4096, "total_size": 2097152, "stream": 0, "segment_type": "small", "blocks": [], `
	)
	file := func(segments, events, more string) string {
		return `{"segments": [` + segments + `], "device_traces": [[` + events + `]]` + more + `}`
	}
	stack := func(function string) string {
		return strings.TrimSuffix(event, "}") + `, "frames": [{"filename": "??", "line": 0, "name": "` + function + `"}]}`
	}
	for _, tt := range []struct{ name, text, want, writer string }{
		{"2.1", file(segment+`"segment_pool_id": [0, 0], "is_expandable": false}`, event, ""), "", "2.1"},
		{"2.0", file(segment+`"active_size": 0}`, event, ""), "", "2.0"},
		{"torch_npu", file(segment+`"is_expandable": false}`, event, ""), trace.NPU, "unknown"},
		{"torch_npu by its functions", file("", stack("c10_npu::NPUCachingAllocator::malloc(unsigned long)"), ""), trace.NPU, "unknown"},
		{
			"XPU", file(segment+`"segment_pool_id": [0, 0], "is_expandable": true}`, event,
				`, "allocator_settings": {"PYTORCH_ALLOC_CONF": "", "expandable_segments": true}`), trace.XPU, "2.11 or later",
		},
		{
			"ROCm by its recorder", file("", event, `, "ashlar": {"version": 1, "torch": "2.9.1+rocm6.4", "hip": "6.4.43482"}`), trace.ROCm, "2.9",
		},
		{"ROCm by its functions", file("", stack("c10::hip::HIPCachingAllocator::Native::NativeCachingAllocator::malloc"), ""), trace.ROCm, "2.0 to 2.1"},
		{"ROCm by its settings", file("", event, `, "allocator_settings": {"PYTORCH_HIP_ALLOC_CONF": ""}`), trace.ROCm, "2.3 to 2.4"},
		{"CUDA", file("", stack("c10::cuda::CUDACachingAllocator::Native::malloc"), `, "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""}`), "", "2.3 to 2.4"},
		{"the profiler", file(segment+`"x": 1}`, strings.TrimSuffix(event, "}")+`, "frames": [], "category": "gradient"}`, ""), trace.Profiler, "unknown"},
	} {
		f := readText(t, tt.text)
		if got := f.Traces[0]; got.Platform != tt.want || (tt.writer != "2.0 to 2.1" && got.Writer.String() != tt.writer) {
			t.Errorf("%s: %q of %v, want %q of %s", tt.name, got.Platform, got.Writer, tt.want, tt.writer)
		}
	}
}

// TestAddresses: what no allocator of PyTorch gives is named.
func TestAddresses(t *testing.T) {
	event := func(addr string) string {
		return `{"action": "alloc", "addr": ` + addr + `, "size": 512, "stream": 0}`
	}
	for _, tt := range []struct{ name, events, want string }{
		{"aligned", event("140000000000000"), ""},
		{"unaligned", event("4096") + "," + event("4097"), "an address that no allocator of PyTorch gives: event 1, alloc at 0x1001: it is no multiple of 512 bytes"},
		{"two", event("256") + "," + event("4097"), "2 addresses that no allocator of PyTorch gives; the first is of event 0, alloc at 0x100: it is no multiple"},
		{"zero", event("0"), "it is 0"},
		{"negative", event("-512"), "it has more than 57 bits"},
		{"free memory of an oom", `{"action": "oom", "device_free": 77, "size": 512, "stream": 0}`, ""},
	} {
		f := readText(t, `{"device_traces": [[`+tt.events+`]]}`)
		if got := strings.Join(f.Warnings, "; "); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	for settings, want := range map[string]string{
		`{"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:1"}`: "",
		`{"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:4"}`: "it is no multiple of 512 bytes",
	} {
		f := readText(t, `{"device_traces": [[{"action": "alloc", "addr": 4097, "size": 7, "stream": 0, "time_us": 1}]], "allocator_settings": `+settings+`}`)
		if got := strings.Join(f.Warnings, "; "); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s of %v: %q", settings, f.Traces[0].Writer, got)
		}
	}
	f := readText(t, `{"segments": [{"device": 0, "address": 100, "total_size": 512, "blocks": []}]}`)
	if got := strings.Join(f.Warnings, "; "); !strings.Contains(got, "segment 0 at 0x64") {
		t.Errorf("%q", got)
	}
}
