package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/replay/verify"
)

// craft is a recording made by hand from the rules of one version. Each line is an
// operation and, behind |, its events; a letter names the address of a segment, in
// alphabetical order. Stream 0 is taken unless @ names another. Everything is freed
// in the end.
type craft struct {
	what     string
	version  string
	conf     string
	fraction string
	total    uint64
	lines    string
}

const mb = 1 << 20

var crafts = []craft{
	{
		"a division of 1 leaves requests unrounded", "2.3.1", "roundup_power2_divisions:1", "", 1 << 30, `
		a 1 1000 | segment_alloc A 2097152 | alloc A 1000
		a 2 600  | alloc A+1000 600
		a 3 700  | alloc A+1600 700
		f 2      | free_requested A+1000 600 | free_completed A+1000 600
		a 4 601  | alloc A+2300 601
		a 5 600  | alloc A+1000 600
		f 1      | free_requested A 1000 | free_completed A 1000
		f 3      | free_requested A+1600 700 | free_completed A+1600 700
		f 4      | free_requested A+2300 601 | free_completed A+2300 601
		f 5      | free_requested A+1000 600 | free_completed A+1000 600
		e        | segment_free A 2097152`,
	},
	{
		"private pools have plain segments", "2.4.0", "expandable_segments:True", "", 1 << 30, `
		newpool 1 plain
		enter 1
		a 1 3145728 | segment_alloc A 20971520 | alloc A 3145728
		exit 1
		f 1         | free_requested A 3145728 | free_completed A 3145728
		delpool 1   | segment_free A 20971520`,
	},
	{
		"streams recorded in a capture are kept", "2.3.1", "", "", 1 << 30, `
		capbegin 1  | segment_alloc A 2097152 @3 | alloc A 8 @3 | alloc A+512 8 @3 | segment_alloc B 2097152 @3 | alloc B 4096 @3
		a 1 5000 @3 | alloc B+4096 5000 @3
		r 1 1
		f 1         | free_requested B+4096 5000 @3
		capend 1    | free_requested B 4096 @3 | free_completed B 4096 @3
		a 2 1000 @3 | alloc A+1024 1000 @3
		sync
		a 3 1000 @3 | free_completed B+4096 5000 @3 | alloc A+2048 1000 @3
		f 2         | free_requested A+1024 1000 @3 | free_completed A+1024 1000 @3
		f 3         | free_requested A+2048 1000 @3 | free_completed A+2048 1000 @3
		delgraph 1
		e           | segment_free B 2097152 @3`,
	},
	{
		"the oldest route wins", "2.9.0", "", "", 1 << 30, `
		newpool 1 plain
		newpool 2 plain
		enter 1
		a 1 1000 | segment_alloc A 2097152 | alloc A 1000
		enter 2
		a 2 1000 | alloc A+1024 1000
		exit 2
		exit 1
		f 1      | free_requested A 1000 | free_completed A 1000
		f 2      | free_requested A+1024 1000 | free_completed A+1024 1000
		delpool 1 | segment_free A 2097152`,
	},
	{
		"a fraction of 1 is a limit, which arms the collector", "2.9.0", "garbage_collection_threshold:0.5", "1.0", 400 * mb, `
		a 1 220200960 | segment_alloc A 220200960 | alloc A 220200960
		a 3 1000      | segment_alloc C 2097152 | alloc C 1000
		f 1           | free_requested A 220200960 | free_completed A 220200960
		f 3           | free_requested C 1000 | free_completed C 1000
		a 2 230686720 | segment_free A 220200960 | segment_alloc B 230686720 | alloc B 230686720
		f 2           | free_requested B 230686720 | free_completed B 230686720
		e             | segment_free B 230686720 | segment_free C 2097152`,
	},
	{
		"overflow pools come after the full release", "2.10.0", "", "0.5", 128 * mb, `
		newpool 1 oom
		enter 1
		a 1 41943040 | segment_alloc A 41943040 | alloc A 41943040
		f 1          | free_requested A 41943040 | free_completed A 41943040
		exit 1
		a 2 20971520 | segment_alloc B 20971520 | alloc B 20971520
		f 2          | free_requested B 20971520 | free_completed B 20971520
		a 3 31457280 | segment_free B 20971520 | alloc A 31457280
		f 3          | free_requested A 31457280 | free_completed A 31457280
		delpool 1    | segment_free A 41943040`,
	},
	{
		// Tensor 4 is a younger object than 2, though it lies before it.
		"equal blocks by creation", "2.12.0", "", "", 1 << 30, `
		a 1 1024 | segment_alloc A 2097152 | alloc A 1024
		a 2 512  | alloc A+1024 512
		a 3 512  | alloc A+1536 512
		f 1      | free_requested A 1024 | free_completed A 1024
		a 4 512  | alloc A 512
		a 5 512  | alloc A+512 512
		f 4      | free_requested A 512 | free_completed A 512
		f 2      | free_requested A+1024 512 | free_completed A+1024 512
		a 6 512  | alloc A+1024 512
		a 7 512  | alloc A 512
		f 3      | free_requested A+1536 512 | free_completed A+1536 512
		f 5      | free_requested A+512 512 | free_completed A+512 512
		f 6      | free_requested A+1024 512 | free_completed A+1024 512
		f 7      | free_requested A 512 | free_completed A 512
		e        | segment_free A 2097152`,
	},
	{
		"equal blocks by segment", "2.13.0", "", "", 1 << 30, `
		a 1 1048576 | segment_alloc B 2097152 | alloc B 1048576
		a 2 1048576 | alloc B+1048576 1048576
		a 3 1048576 | segment_alloc A 2097152 | alloc A 1048576
		a 4 1048576 | alloc A+1048576 1048576
		f 2         | free_requested B+1048576 1048576 | free_completed B+1048576 1048576
		f 3         | free_requested A 1048576 | free_completed A 1048576
		a 5 1048576 | alloc B+1048576 1048576
		f 4         | free_requested A+1048576 1048576 | free_completed A+1048576 1048576
		f 5         | free_requested B+1048576 1048576 | free_completed B+1048576 1048576
		f 1         | free_requested B 1048576 | free_completed B 1048576
		e           | segment_free B 2097152 | segment_free A 2097152`,
	},
	{
		"the limit is rounded", "2.13.0", "", "0.5", 2*20*mb - 1, `
		a 1 3145728 | segment_alloc A 20971520 | alloc A 3145728
		f 1         | free_requested A 3145728 | free_completed A 3145728
		e           | segment_free A 20971520`,
	},
	{
		"a MemPool does not keep a request from the full release", "2.13.0", "", "0.5", 60 * mb, `
		a 1 20971520 | segment_alloc A 20971520 | alloc A 20971520
		f 1          | free_requested A 20971520 | free_completed A 20971520
		newpool 1 plain
		enter 1
		a 2 20971520 | segment_free A 20971520 | segment_alloc B 20971520 | alloc B 20971520
		exit 1
		f 2          | free_requested B 20971520 | free_completed B 20971520
		delpool 1    | segment_free B 20971520`,
	},
	{
		"a MemPool does not keep a request from processing events", "2.13.0", "", "", 1 << 30, `
		a 1 1000 | segment_alloc A 2097152 | alloc A 1000
		r 1 1
		f 1      | free_requested A 1000
		newpool 1 plain
		enter 1
		sync
		a 2 1000 | free_completed A 1000 | segment_alloc B 2097152 | alloc B 1000
		exit 1
		f 2      | free_requested B 1000 | free_completed B 1000
		delpool 1 | segment_free B 2097152
		e        | segment_free A 2097152`,
	},
}

// TestCrafted: each file comes out under the rules of its version, and not under
// those of 2.11.
func TestCrafted(t *testing.T) {
	for _, c := range crafts {
		t.Run(c.version+" "+c.what, func(t *testing.T) {
			text := c.file(t)
			if d := verifiedAs(t, text, c.version); d != "" {
				t.Errorf("as written: %s", d)
			}
			if verifiedAs(t, text, "2.11.0") == "" {
				t.Error("identical under the rules of 2.11, too")
			}
			checkSnapshot(t, text)
		})
	}
}

// verifiedAs verifies a file as one of a version, and returns how it differs.
func verifiedAs(t *testing.T, file []byte, version string) string {
	t.Helper()
	rec, err := Read("crafted", bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	rec.Torch = version
	r, err := Verify(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if r.Identical {
		return ""
	}
	return r.First.String()
}

// checkSnapshot verifies what a snapshot of the same run would show.
func checkSnapshot(t *testing.T, file []byte) {
	t.Helper()
	rec, err := Read("crafted", bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := rec.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	v, err := verify.Run(t.Context(), tr, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !v.Result.Identical || v.Result.Version != rec.Version() {
		t.Errorf("as a snapshot, by the rules of %v: %v", v.Result.Version, v.Result.First)
	}
}

var craftStreams = []uint64{0, 0x1000, 0x2000, 0x3000}

// file writes the recording as JSON.
func (c craft) file(t *testing.T) []byte {
	t.Helper()
	ops, trace, pools := [][]any{}, [][]any{}, 0
	for line := range strings.Lines(strings.TrimSpace(c.lines)) {
		parts := strings.Split(line, "|")
		var last uint64 // address of the last event
		for _, e := range parts[1:] {
			f, stream := craftFields(e)
			last = craftAddress(t, f[1])
			trace = append(trace, []any{f[0], last, craftNumber(t, f[2]), craftStreams[stream], strconv.Itoa(len(ops))})
		}
		f, stream := craftFields(parts[0])
		op := []any{f[0]}
		for _, x := range f[1:] {
			if n, err := strconv.ParseUint(x, 10, 64); err == nil {
				op = append(op, n)
			} else {
				op = append(op, x)
			}
		}
		switch f[0] {
		case "a":
			op = append(op, stream, last)
		case "newpool":
			pools++
			op = append(op, []int{0, pools})
		case "capbegin":
			op = append(op, nil)
		}
		ops = append(ops, op)
	}
	text, err := json.Marshal(map[string]any{
		"torch": c.version, "scen": c.what, "conf": c.conf, "fraction": c.fraction, "total": c.total,
		"streams": craftStreams, "ops": ops, "stats": []any{}, "trace": trace, "segments": c.left(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// left lists the segments at the end: none but the one in which a capture keeps its
// generator's state.
func (c craft) left() []any {
	if !strings.Contains(c.lines, "capbegin") {
		return []any{}
	}
	block := func(at, size, requested int, state string) any {
		return map[string]any{"address": craftBase + at, "size": size, "requested_size": requested, "state": state}
	}
	return []any{map[string]any{
		"device": 0, "address": craftBase, "total_size": 2097152, "allocated_size": 1024, "active_size": 1024, "requested_size": 16,
		"stream": craftStreams[3], "segment_type": "small", "segment_pool_id": []int{0, 0}, "is_expandable": false,
		"blocks": []any{
			block(0, 512, 8, "active_allocated"), block(512, 512, 8, "active_allocated"), block(1024, 2096128, 1000, "inactive"),
		},
	}}
}

// craftFields cuts an operation or an event into words, and @ off its end.
func craftFields(text string) (fields []string, stream int) {
	fields = strings.Fields(text)
	if n := len(fields); fields[n-1][0] == '@' {
		stream, _ = strconv.Atoi(fields[n-1][1:])
		fields = fields[:n-1]
	}
	return fields, stream
}

const craftBase = 0x7f0000000000

// craftAddress reads "A" or "A+512": segments are 1 GiB apart.
func craftAddress(t *testing.T, text string) uint64 {
	t.Helper()
	name, offset, found := strings.Cut(text, "+")
	addr := craftBase + uint64(name[0]-'A')<<30
	if found {
		addr += craftNumber(t, offset)
	}
	return addr
}

func craftNumber(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("crafted file: %w", err))
	}
	return n
}
