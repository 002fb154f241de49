package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// written returns a file with one segment and one event, with or without the
// fields that the versions of PyTorch added.
func written(v pytorch.Version) string {
	var event, segment, top, settings strings.Builder
	since := func(b *strings.Builder, minor int, text string) {
		if v >= pytorch.Of(2, minor) {
			b.WriteString(", " + text)
		}
	}
	since(&segment, 1, `"segment_pool_id": [0, 0]`)
	since(&event, 2, `"time_us": 7`)
	since(&event, 8, `"compile_context": "N/A"`)
	since(&event, 10, `"user_metadata": ""`)
	since(&event, 12, `"pool_id": [0, 0]`)
	since(&settings, 9, `"graph_capture_record_stream_reuse": false`)
	since(&top, 3, `"allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""`+settings.String()+`}`)
	since(&top, 5, `"external_annotations": []`)
	return fmt.Sprintf(`{"segments": [{"device": 0, "address": 2097152, "total_size": 2097152, "blocks": [{"size": 2097152, "state": "inactive"}]%s}],
		"device_traces": [[{"action": "segment_alloc", "addr": 2097152, "size": 2097152, "stream": 0%s}]]%s}`, &segment, &event, &top)
}

func TestVersionDeduced(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"2.0", written(pytorch.Of(2, 0)), "2.0"},
		{"2.1", written(pytorch.Of(2, 1)), "2.1"},
		{"2.2", written(pytorch.Of(2, 2)), "2.2"},
		{"2.3", written(pytorch.Of(2, 3)), "2.3 to 2.4"},
		{"2.5", written(pytorch.Of(2, 5)), "2.5 to 2.7"},
		{"2.8", written(pytorch.Of(2, 8)), "2.8"},
		{"2.9", written(pytorch.Of(2, 9)), "2.9"},
		{"2.11", written(pytorch.Of(2, 11)), "2.10 to 2.11"},
		{"2.12", written(pytorch.Of(2, 12)), "2.12 or later"},
		{"hint of resize_", strings.Replace(written(pytorch.Of(2, 13)), `"user_metadata": ""`, `"user_metadata": "x mallocWithAddress"`, 1), "2.13"},
		{"later main", strings.Replace(written(pytorch.Of(2, 13)), `{"segments"`, `{"trace_alloc_max_entries": 5, "segments"`, 1), "2.13"},
		{"our recorder's", strings.Replace(written(pytorch.Of(2, 11)), `{"segments"`, `{"ashlar": {"version": 1, "torch": "2.11.0+cu130"}, "segments"`, 1), "2.11"},
		{"recorder without a version", strings.Replace(written(pytorch.Of(2, 11)), `{"segments"`, `{"ashlar": {"version": 1, "torch": "?"}, "segments"`, 1), "2.10 to 2.11"},
		{"no events", strings.Split(written(pytorch.Of(2, 11)), `[[`)[0] + `[[]], "allocator_settings": {}}`, "2.3 to 2.4"},
		{"a key of 2.11", strings.Replace(written(pytorch.Of(2, 11)), `CONF": ""`, `CONF": "large_segment_size_mb:32"`, 1), "2.11"},
		{"a key of 2.6", strings.Replace(written(pytorch.Of(2, 6)), `CONF": ""`, `CONF": "max_non_split_rounding_mb:32"`, 1), "2.6 to 2.7"},
		{"a key that was refused", strings.Replace(written(pytorch.Of(2, 9)), `CONF": ""`, `CONF": "large_segment_size_mb:32"`, 1), "2.9"},
		{"memory_snapshot()", `[{"device": 0, "address": 512, "total_size": 512, "segment_pool_id": [0, 0], "blocks": []}]`, "2.1 or later"},
	} {
		f := readText(t, c.text)
		if got := f.Traces[0].Writer; got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// What comes behind the place where a file was cut off cannot be told from what
// its writer left out.
func TestVersionOfTruncated(t *testing.T) {
	text := written(pytorch.Of(2, 5))
	f := readText(t, text[:strings.Index(text, `"allocator_settings"`)])
	if got, want := f.Traces[0].Writer.String(), "2.2 to 2.7"; f.Truncated == nil || got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
