package snapshot

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/trace"
)

// segmentJSON is a snapshot with segments, each given by its fields.
func segmentJSON(segments ...string) []byte {
	return []byte(`{"segments": [` + strings.Join(segments, ", ") + `], "device_traces": []}`)
}

const (
	goodBlocks  = `"blocks": [{"address": 2097152, "size": 512, "requested_size": 500, "state": "active_allocated"}, {"address": 2097664, "size": 1536, "requested_size": 0, "state": "inactive"}]`
	goodSegment = `{"device": 0, "address": 2097152, "total_size": 2048, "allocated_size": 512, "active_size": 512, "requested_size": 500, "stream": 0, "segment_type": "small", ` + goodBlocks + `}`
)

// Numbers that cannot be are refused; those that do not agree are told.
func TestNumbers(t *testing.T) {
	tests := []struct{ name, old, new, refusal, told string }{
		{name: "good"},
		{"address", `"address": 2097152, "total`, `"address": 18446744073709551104, "total`, "goes beyond the last address", ""},
		{"device", `"device": 0`, `"device": -1`, "a segment on device -1", ""},
		{"large device", `"device": 0`, `"device": 1024`, "a segment on device 1024", ""},
		{"allocated", `"allocated_size": 512`, `"allocated_size": 0`, "", "segments have another allocated_size than their blocks (1 in all, the first 0 instead of 512)"},
		{"active", `"active_size": 512`, `"active_size": 1024`, "", "segments have another active_size than their blocks (1 in all, the first 1024 instead of 512)"},
		{"missing blocks", `"total_size": 2048`, `"total_size": 4096`, "", "blocks do not add up to their segment (1 in all, the first has 2048 bytes of 4096)"},
		{"no blocks", goodBlocks, `"blocks": []`, "", "blocks do not add up to their segment"},
		{"gap", `"address": 2097664`, `"address": 2098176`, "", "blocks do not lie one behind the other (1 in all, the first at 0x200400 instead of 0x200200)"},
		{"odd size", `"size": 1536`, `"size": 1537`, "", "blocks are not aligned (1 in all, the first of 1537 bytes at 0x200200)"},
		{"too small", `"requested_size": 500, "state"`, `"requested_size": 513, "state"`, "", "blocks are smaller than what was requested (1 in all, the first of 512 bytes for 513)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := read1(segmentJSON(strings.Replace(goodSegment, tt.old, tt.new, 1)))
			if tt.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refusal) || !strings.HasSuffix(err.Error(), damaged) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Join(f.Contradictions, "; "); !strings.Contains(told, tt.told) || (tt.told == "") != (told == "") || len(f.Warnings) != len(f.Contradictions) {
				t.Errorf("got  %s\nwant %s; warnings %q", told, tt.told, f.Warnings)
			}
		})
	}
}

func TestSums(t *testing.T) {
	huge := func(i int) string {
		return fmt.Sprintf(`{"device": 0, "address": %d, "total_size": %d, "allocated_size": 0, "active_size": 0, "blocks": [{"address": %d, "size": %d, "state": "inactive"}]}`,
			i*maxSize, maxSize, i*maxSize, maxSize)
	}
	var all []string
	for i := range maxReserved/maxSize + 1 {
		all = append(all, huge(i))
	}
	if _, err := read1(segmentJSON(all...)); err == nil || !strings.Contains(err.Error(), "segments of more than 9007199254740992 bytes together") {
		t.Errorf("got %v", err)
	}
	if f, err := read1(segmentJSON(all[1:]...)); err != nil || f.Contradictions != nil {
		t.Errorf("%v, %v", err, f.Contradictions)
	}
	if f, err := read1(segmentJSON(goodSegment, goodSegment)); err != nil || len(f.Contradictions) != 1 || f.Contradictions[0] != "segments overlap (1 in all, the first at 0x200000)" {
		t.Errorf("%v, %v", err, f.Contradictions)
	}
	event := func(action string, size uint64) string {
		return fmt.Sprintf(`{"action": %q, "addr": 1, "size": %d, "stream": 0}`, action, size)
	}
	events := func(all ...string) []byte {
		return []byte(`{"segments": [], "device_traces": [[` + strings.Join(all, ", ") + `]]}`)
	}
	if _, err := read1(events(event("oom", 1<<62))); err != nil {
		t.Errorf("any size may fail: %v", err)
	}
	b := newBuilder(Limits{})
	b.moved = math.MaxInt64 - 1
	for i, refused := range []bool{false, true} {
		if err := b.boundEvent(&trace.Event{Size: 1}); (err != nil) != refused {
			t.Errorf("event %d: %v", i, err)
		}
	}
}

// A file with very many devices is refused before each takes memory.
func TestManyDevices(t *testing.T) {
	lists := func(n int) []byte {
		return []byte(`{"segments": [` + goodSegment + `], "device_traces": [` + strings.TrimSuffix(strings.Repeat("[],", n), ",") + `]}`)
	}
	if f, err := read1(lists(maxDevices)); err != nil || len(f.Traces) != maxDevices {
		t.Errorf("%v", err)
	}
	if _, err := read1(lists(maxDevices + 1)); err == nil || !strings.Contains(err.Error(), "traces of 1025 devices") {
		t.Errorf("got %v", err)
	}
}

// The free blocks of each pair of stream and pool are a set of their own.
func TestManyPools(t *testing.T) {
	for _, c := range []struct{ name, segment, event string }{
		{"streams of segments", `, "stream": %d`, ""},
		{"pools of segments", `, "segment_pool_id": [0, %d]`, ""},
		{"streams of events", "", `, "stream": %d`},
		{"streams of failed requests", "", `, "action": "oom", "stream": %d`},
		{"pools of events", "", `, "stream": 0, "pool_id": [0, %d]`},
	} {
		rows := func(format, row string, n int) string {
			if format == "" {
				n = 0
			}
			all := make([]string, n)
			for i := range all {
				all[i] = fmt.Sprintf(row, fmt.Sprintf(format, i))
			}
			return strings.Join(all, ", ")
		}
		file := func(n int) []byte {
			return []byte(`{"segments": [` + rows(c.segment, `{"device": 0, "address": 2097152, "total_size": 0, "blocks": []%s}`, n) +
				`], "device_traces": [[` + rows(c.event, `{"action": "alloc", "addr": 512, "size": 512%s}`, n) + `]]}`)
		}
		if _, err := read1(file(maxPools)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := read1(file(maxPools + 1)); err == nil || !strings.Contains(err.Error(), "more than 4096 streams and pools") {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}
