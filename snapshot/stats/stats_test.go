package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/google/go-cmp/cmp"
)

func TestSeveral(t *testing.T) {
	stats := map[string]int64{"num_ooms": 1, "allocated_bytes.all.current": 512, "reserved_bytes.all.current": 2097152}
	flat, _ := json.Marshal(stats)
	one := string(flat)
	for _, tt := range []struct {
		name, text string
		want       []string // device label@line
	}{
		{"list", "[" + one + "," + one + "]", []string{"-1 [0]@1", "-1 [1]@1"}},
		{"devices", `{"cuda:0":` + one + `,"cuda:1":` + one + "}", []string{"0 cuda:0@1", "1 cuda:1@1"}},
		{"numbers", `{0: ` + one + `,\n 3: ` + one + "}", []string{"0 0@1", "3 3@1"}},
		{"ranks", `{"rank0":` + one + ",\n\"rank1\":" + one + "}", []string{"-1 rank0@1", "-1 rank1@2"}},
		{"named", `{"device":2,"when":"oom","memory_stats":` + one + "}", []string{"2 memory_stats@1"}},
		{"named by text", `{"gpu":"cuda:5","memory_stats":` + one + "}", []string{"5 memory_stats@1"}},
		{"beside its values", `{"device_id":4,"num_ooms":1,"reserved_bytes.all.peak":3}`, []string{"4 @1"}},
		{"lines", one + "\n" + one + "\n\n" + one, []string{"-1 @1", "-1 @2", "-1 @4"}},
		{"log", "rank 3, device 1: " + one + "\nstats of cuda:2 " + one + "\ngpu0 before\n" + one, []string{"1 rank 3, device 1:@1", "2 stats of cuda:2@2", "-1 @4"}},
		{"table and dict", one + "\n" + smallTable, []string{"-1 @1", "1 @3"}},
		{"tables", smallTable + "\n" + strings.Replace(smallTable, "ID 1", "ID 2", 1), []string{"1 @2", "2 @10"}},
	} {
		all, err := ParseAll([]byte(strings.ReplaceAll(tt.text, `\n`, "\n")))
		if tt.name == "numbers" {
			tt.want[1] = "3 3@2"
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got []string
		for _, d := range all {
			got = append(got, fmt.Sprintf("%d %s@%d", d.Device, d.Label, d.Line))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if _, err := Parse([]byte(tt.text)); len(tt.want) > 1 && (err == nil || !strings.Contains(err.Error(), "line ")) {
			t.Errorf("%s: Parse of several gives %v", tt.name, err)
		}
	}
}

// smallTable is a table as 1.4 printed it, abbreviated.
const smallTable = `|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 1                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 3            |        cudaMalloc retries: 12        |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |  659155 KB |    4460 MB |   12439 MB |     795 B  |
| Allocations           |     820    |    7500 K  |     751 M  |    4321    |
`

func TestOldTable(t *testing.T) {
	d, err := Parse([]byte(smallTable))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		"num_ooms": 3, "num_alloc_retries": 12,
		"allocated_bytes.all.current": 659155<<10 + 512, "allocated_bytes.all.peak": 4460<<20 + 1<<19,
		"allocated_bytes.all.allocated": 12439<<20 + 1<<19, "allocated_bytes.all.freed": 795,
		"allocation.all.current": 820, "allocation.all.peak": 7500500, "allocation.all.allocated": 751500000, "allocation.all.freed": 4321,
	}
	if diff := cmp.Diff(want, d.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	ranges := map[string]units.Range{
		"allocated_bytes.all.current":   {Low: 659155 << 10, Mid: 659155<<10 + 512, High: 659156<<10 - 1},
		"allocated_bytes.all.peak":      {Low: 4460 << 20, Mid: 4460<<20 + 1<<19, High: 4461<<20 - 1},
		"allocated_bytes.all.allocated": {Low: 12439 << 20, Mid: 12439<<20 + 1<<19, High: 12440<<20 - 1},
		"allocation.all.peak":           {Low: 7500000, Mid: 7500500, High: 7500999},
		"allocation.all.allocated":      {Low: 751000000, Mid: 751500000, High: 751999999},
	}
	if diff := cmp.Diff(ranges, d.Ranges); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
	// Its title and frame cut off, as in fairseq#2442, and another device's words.
	cut := strings.ReplaceAll(smallTable[strings.Index(smallTable, "| Allocated"):], "GPU", "NPU")
	if d, err := Parse([]byte(cut)); err != nil || d.Device != -1 || len(d.Values) != 8 {
		t.Errorf("cut: %+v, %v", d, err)
	}
	npu := strings.NewReplacer("CUDA", "NPU", "cuda", "npu", "Allocated memory     ", "NPU reserved memory  ").Replace(smallTable)
	if d, err := Parse([]byte(npu)); err != nil || d.Values["num_ooms"] != 3 || d.Values["reserved_bytes.all.freed"] != 795 {
		t.Errorf("npu: %+v, %v", d, err)
	}
}

func TestOtherVersions(t *testing.T) {
	d, err := Parse([]byte(`{"num_ooms": 0, "num_oom_rejections": 2, "reserved_bytes": {"all": {"current": 5, "median": 3}, "huge_pool": {"peak": 9}}, "note": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"num_oom_rejections", "reserved_bytes.all.median", "reserved_bytes.huge_pool.peak", "note"}, d.Unknown); diff != "" {
		t.Errorf("unknown:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"num_oom_rejections": 2, "reserved_bytes.all.median": 3, "reserved_bytes.huge_pool.peak": 9}, d.Extra); diff != "" {
		t.Errorf("extra:\n%s", diff)
	}
	if d.Values["reserved_bytes.all.current"] != 5 || len(d.Values) != 2 || len(d.Missing) != 120 {
		t.Errorf("values %v, %d missing", d.Values, len(d.Missing))
	}
	if d, err := Parse([]byte(`{'max_split_size': -1, 'oversize_segments.current': -3}`)); err != nil || d.Values["max_split_size"] != -1 || d.Values["oversize_segments.current"] != -3 {
		t.Errorf("negative numbers: %+v, %v", d, err)
	}
}

func TestErrors(t *testing.T) {
	const head = `{"num_ooms": 1, "active.all.peak": 2,` + "\n "
	for _, tt := range []struct {
		text      string
		line, col int
		problem   string
	}{
		{head, 2, 2, "expected a value, but the text ends"},
		{head + `"x": `, 2, 7, "the text ends"},
		{head + `"x" 5}`, 2, 6, `expected : after the key "x", but found '5'`},
		{head + `"x": 5 6}`, 2, 9, `expected , or }, but found '6'`},
		{head + `"x": __import__("os")}`, 2, 7, "calls are not run"},
		{head + `"x": OrderedDict(5)}`, 2, 7, "not pairs"},
		{head + `"x": "abc`, 2, 7, "does not end"},
		{head + `"é": @}`, 2, 7, "found '@'"},
		{head + `(1, 2): 3}`, 2, 2, "a key is"},
		{head + `"x": 1-2}`, 2, 7, `"1-2" is not a number`},
		{head + `"x": ` + strings.Repeat("[", 20), 2, 22, "nested more than 16 deep"},
		{`{"active.all.current": "many", "num_ooms": 1}`, 1, 24, "not a whole number"},
		{`{"active.all.current": 1.5, "num_ooms": 1}`, 1, 24, "not a whole number"},
		{"x\n" + strings.Replace(smallTable, "4460 MB", "446O MB", 1), 7, 38, `"446O MB" in the row "Allocated memory" is not a number and a unit`},
		{strings.Replace(smallTable, "4460 MB", "4460 K ", 1), 6, 38, "unit of another row"},
		{strings.Replace(smallTable, "4460 MB", "-446 MB", 1), 6, 38, "negative"},
	} {
		all, err := ParseAll([]byte(tt.text))
		var e *SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("%q: %d dumps, %v", tt.text, len(all), err)
			continue
		}
		if e.Line != tt.line || e.Column != tt.col && tt.col != 38 || !strings.Contains(e.Problem, tt.problem) {
			t.Errorf("%q: %v, want line %d, column %d, %s", tt.text, e, tt.line, tt.col, tt.problem)
		}
	}
	// One of several is broken: the others are there.
	all, err := ParseAll([]byte(head + "\n\n" + `{"num_ooms": 7, "active.all.peak": 2}`))
	var e *SyntaxError
	if !errors.As(err, &e) || len(all) != 1 || all[0].Values["num_ooms"] != 7 {
		t.Errorf("%d dumps, %v", len(all), err)
	}
}

func TestNone(t *testing.T) {
	for _, text := range []string{
		"", "{}", "[]", "OrderedDict()", "hello {world}", `{"segments": [], "device_traces": []}`, `{"active": 5, "segment": 7}`, `{"num_ooms": 3}`,
		"CUDA out of memory. Tried to allocate 20.00 MiB", "| a | b | c | d | e |\n", "\x80\x02}q\x00",
	} {
		if all, err := ParseAll([]byte(text)); !errors.Is(err, ErrNotFound) || len(all) > 0 {
			t.Errorf("%q: %d dumps, %v", text, len(all), err)
		}
	}
	if _, err := ParseAll(make([]byte, maxInput+1)); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("too large: %v", err)
	}
}

// TestTableRoundTrip: numbers written as the table writes them read back as
// ranges that hold them.
func TestTableRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	write := func(n int64, units []string, threshold, factor float64) string {
		ref, i := float64(n), 0
		for ; i+1 < len(units) && ref >= threshold*factor; i++ {
			n, ref = n/int64(factor), ref/factor
		}
		return fmt.Sprintf("%d %s", n, units[i])
	}
	for range 5000 {
		n := int64(rng.Uint64() >> (8 + rng.IntN(56)))
		for _, tt := range []struct {
			s     string
			bytes bool
		}{
			{write(n, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}, 768, 1024), true}, {write(n, []string{"", "K", "M"}, 750, 1000), false},
		} {
			b, exact, problem := count(strings.TrimSpace(tt.s), tt.bytes)
			if problem != "" || b.low > n || b.high < n || exact != (b.low == b.high) || b.mid < b.low || b.mid > b.high {
				t.Fatalf("%d as %q: %+v, %v %s", n, tt.s, b, exact, problem)
			}
		}
	}
}
