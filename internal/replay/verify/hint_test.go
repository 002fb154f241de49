package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// hints is a file of 2.13 in which two requests name the address they would like:
// the first in the middle of a free block, the second at the start of one.
func hints(t *testing.T) *trace.Trace {
	t.Helper()
	const base = 0x7f0000000000
	var events []string
	add := func(action string, at, size int, meta string) {
		events = append(events, fmt.Sprintf(`{"action": %q, "addr": %d, "size": %d, "stream": 0, "time_us": %d, "compile_context": "N/A",
			"user_metadata": %q, "pool_id": [0, 0], "frames": []}`, action, base+at, size, len(events), meta))
	}
	free := func(at, size int, meta string) {
		add("free_requested", at, size, meta)
		add("free_completed", at, size, meta)
	}
	add("segment_alloc", 0, 2<<20, "")
	add("alloc", 0, 4096, "")
	add("alloc", 4096, 1000, "")
	free(0, 4096, "")
	add("alloc", 0, 2048, "step 1\nmallocWithAddress")
	add("alloc", 2048, 1000, "step 1\nmallocWithAddress")
	free(0, 2048, "step 1\nmallocWithAddress")
	add("alloc", 3072, 600, "mallocWithAddress")
	var blocks []string
	at := base
	for _, b := range []struct {
		size, requested int
		state           string
	}{{2048, 2048, "inactive"}, {1024, 1000, "active_allocated"}, {1024, 600, "active_allocated"}, {1024, 1000, "active_allocated"}, {2<<20 - 5120, 0, "inactive"}} {
		blocks = append(blocks, fmt.Sprintf(`{"address": %d, "size": %d, "requested_size": %d, "state": %q, "frames": []}`, at, b.size, b.requested, b.state))
		at += b.size
	}
	text := fmt.Sprintf(`{"segments": [{"device": 0, "address": %d, "total_size": %d, "allocated_size": 3072, "active_size": 3072, "requested_size": 2600,
		"stream": 0, "segment_type": "small", "segment_pool_id": [0, 0], "is_expandable": false, "frames": [], "blocks": [%s]}],
		"device_traces": [[%s]], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "graph_capture_record_stream_reuse": false},
		"external_annotations": []}`, base, 2<<20, strings.Join(blocks, ", "), strings.Join(events, ", "))
	f, err := snapshot.Read(t.Context(), "hints", strings.NewReader(text), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Traces[0]
}

func TestHints(t *testing.T) {
	tr := hints(t)
	if got := tr.Writer.String(); got != "2.13" {
		t.Errorf("written by %s", got)
	}
	v := verified(t, tr)
	if !v.Result.Identical {
		t.Fatal(v.Result.First)
	}
	p := v.Program()
	var sizes []uint64
	for i := range p.Len() {
		if c := p.Call(i); c.Kind == replay.CallAlloc {
			sizes = append(sizes, c.Size)
		}
	}
	if want := []uint64{4096, 1000, 1000, 600}; fmt.Sprint(sizes) != fmt.Sprint(want) || p.Ignored != 0 {
		t.Errorf("the program allocates %v, want %v; %d events ignored", sizes, want, p.Ignored)
	}
	tr.Writer = pytorch.Exactly(pytorch.Default)
	if v, err := verify.Run(t.Context(), tr, verify.Options{}); err != nil || v.Result.Identical {
		t.Errorf("under the rules of 2.11: identical %v, %v", err == nil && v.Result.Identical, err)
	}
}
