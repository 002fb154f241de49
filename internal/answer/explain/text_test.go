package explain

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// oom reads the one message of a text.
func oom(t *testing.T, text string) *message.OOM {
	t.Helper()
	all, err := message.Parse(text)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d messages, %v in %q", len(all), err, text)
	}
	return all[0]
}

func fromText(t *testing.T, in Input) *Report {
	t.Helper()
	r, err := FromText(in)
	if err != nil {
		t.Fatal(err)
	}
	checkText(t, r)
	return r
}

// checkText checks what holds for every report on a text.
func checkText(t *testing.T, r *Report) {
	t.Helper()
	for _, line := range r.Arithmetic {
		if wrong := wrongSum(line); wrong != "" {
			t.Errorf("%s: %s", wrong, line)
		}
	}
	if r.Summary == "" || !strings.HasSuffix(r.Summary, ".") {
		t.Errorf("summary %q", r.Summary)
	}
	if r.Confidence == Certain && len(r.Alternatives) > 0 {
		t.Errorf("certain, and yet %v", r.Alternatives)
	}
	if r.Confidence == Open && len(r.Alternatives) == 0 && r.Trigger != Unknown && r.Trigger != None {
		t.Errorf("%s is open without an alternative", r.Trigger)
	}
	for _, n := range r.Notes {
		if strings.Contains(n, "cannot help") && r.Trigger != Capacity {
			t.Errorf("%s with the note %q", r.Trigger, n)
		}
	}
	for _, list := range [][]string{r.Arithmetic, r.Notes, {r.Summary}} {
		for _, text := range list {
			if strings.Contains(text, "%!") || strings.Contains(text, "  ") || strings.Contains(text, "..") {
				t.Errorf("text %q", text)
			}
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"alternatives", "pinners", "holders", "findings", "fixes", "arithmetic", "record", "notes"} {
		if strings.Contains(string(raw), `"`+list+`":null`) {
			t.Errorf("%s is null", list)
		}
	}
}

var (
	sumTerm = regexp.MustCompile(`(^|[-+=] )(-?[0-9.]+) (B|KiB|MiB|GiB)(?: \(([0-9.]+) (B|KiB|MiB|GiB)\))? `)
	scales  = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// wrongSum does what a reader with a pocket calculator would, and says what is
// wrong with a line.
func wrongSum(line string) string {
	if !strings.Contains(line, " = ") {
		return ""
	}
	line = strings.TrimPrefix(line, "dump: ")
	var sum, result, unit float64
	for _, m := range sumTerm.FindAllStringSubmatch(line, -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return err.Error()
		}
		if unit == 0 {
			unit = scales[m[3]]
		}
		if scales[m[3]] != unit {
			return "units differ"
		}
		if own, err := strconv.ParseFloat(m[4], 64); m[4] != "" && (err != nil || math.Abs(own*scales[m[5]]/unit-n) > 0.0051) {
			return m[2] + " is not " + m[4] + " " + m[5]
		}
		switch strings.TrimSpace(m[1]) {
		case "-":
			sum -= n
		case "=":
			result = n
		default:
			sum += n
		}
	}
	if math.Abs(sum-result) > max(1e-6, 1e-15*math.Abs(result)) { // what a float64 can tell
		return fmt.Sprintf("%.2f is not %.2f", sum, result)
	}
	return ""
}

// TestWrongSum: the checker finds wrong sums.
func TestWrongSum(t *testing.T) {
	for _, line := range []string{
		"1.00 GiB a + 1.00 GiB b = 2.01 GiB c", "1.00 GiB a + 0.70 GiB (812.20 MiB) b = 1.70 GiB c", "1.00 GiB a - 1.00 MiB b = 0.00 GiB c",
	} {
		if wrongSum(line) == "" {
			t.Errorf("%q passes", line)
		}
	}
	if wrong := wrongSum("6.05 GiB a + 0.70 GiB (712.20 MiB) b - 1.00 GiB c = 5.75 GiB d, less than 7.00 GiB"); wrong != "" {
		t.Error(wrong)
	}
}

// TestWild: messages of public issues, their verdicts and their sums.
func TestWild(t *testing.T) {
	if len(wild) < 30 {
		t.Fatalf("%d messages", len(wild))
	}
	for _, tt := range wild {
		t.Run(tt.name, func(t *testing.T) {
			r := fromText(t, Input{Message: oom(t, tt.text)})
			if r.Trigger != tt.verdict || r.Confidence != tt.confidence || r.Capped != tt.underCap {
				t.Errorf("%s %s, under cap %v: %s", r.Trigger, r.Confidence, r.Capped, r.Summary)
			}
			for _, sum := range tt.sums {
				if !slices.ContainsFunc(r.Arithmetic, func(line string) bool { return strings.HasPrefix(line, sum) }) {
					t.Errorf("no line %q in %q", sum, r.Arithmetic)
				}
			}
		})
	}
}

type measuredRun struct {
	Name, Label, Conf, OOM string
	LimitMB                uint64 `json:"limit_mb"`
}

func measured(t *testing.T) []measuredRun {
	t.Helper()
	return jsonl.Must[measuredRun](t, "../../../testdata/measured.jsonl")
}

// TestMeasuredMessages: eight workloads died of fragmentation under a cap, and
// streams_graphs of a private pool. The text alone must not be certain of
// anything else.
func TestMeasuredMessages(t *testing.T) {
	n, runs := 0, measured(t)
	for _, m := range runs {
		if m.OOM == "" {
			continue
		}
		in := Input{Message: oom(t, m.OOM)}
		r := fromText(t, in)
		survived := slices.ContainsFunc(runs, func(o measuredRun) bool { return o.OOM == "" && o.Name == m.Name && o.LimitMB == m.LimitMB })
		if hopeless := strings.Contains(r.Summary, "No allocator setting helps"); survived && (hopeless || r.Confidence == Certain) {
			t.Errorf("%s %s: %s %s, and other settings survived: %s", m.Name, m.Label, r.Trigger, r.Confidence, r.Summary)
		}
		if !r.Capped || r.Limit.Source != "message" || m.LimitMB<<20 < *r.Limit.Min || m.LimitMB<<20 > *r.Limit.Max {
			t.Errorf("%s %s: under cap %v, limit %+v", m.Name, m.Label, r.Capped, r.Limit)
		}
		if m.Label != "tight-default" {
			continue
		}
		n++
		if r.Confidence == Certain || r.Trigger != Fragmentation {
			t.Errorf("%s: %s %s", m.Name, r.Trigger, r.Confidence)
		}
		pools := slices.ContainsFunc(r.Alternatives, func(a Alternative) bool { return a.Verdict == Pools })
		if !pools {
			t.Errorf("%s: private pools are not among %v", m.Name, r.Alternatives)
		}
		// With the limit and the settings said, the sums are sharper, and never wrong.
		in.Limit, in.Believed = m.LimitMB<<20, &m.Conf
		if r := fromText(t, in); r.Trigger != Fragmentation || r.Confidence == Certain || r.Limit.Source != "given" {
			t.Errorf("%s, all said: %s %s %+v", m.Name, r.Trigger, r.Confidence, r.Limit)
		}
	}
	if n != 9 {
		t.Errorf("%d workloads", n)
	}
}

const (
	capped = "CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 77.15 GiB is free. Including non-PyTorch memory, this process has 7.49 GiB memory in use. 7.43 GiB allowed; Of the allocated memory 6.05 GiB is allocated by PyTorch, and 712.20 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
	toobig = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 92.79 GiB is free. 16.21 GiB allowed; Of the allocated memory 14.37 GiB is allocated by PyTorch, and 1.06 GiB is reserved by PyTorch but unallocated. " + adviceExpandable
)

// TestBelieved: what the user says about settings rules causes out, and finds
// advice that is applied already.
func TestBelieved(t *testing.T) {
	for _, tt := range []struct {
		text, conf          string
		verdict, confidence string
		note                string
		alternative         string // of this verdict
	}{
		{capped, "", Fragmentation, Likely, "which is meant for this case", Pools},
		{capped, "expandable_segments:True", Fragmentation, Likely, "which is already on, so it is not what is missing", Pools},
		{capped, "max_split_size_mb:512", Fragmentation, Open, "which is meant for this case", Setting},
		{capped, "max_split_size_mb:x", Fragmentation, Open, `settings "max_split_size_mb:x"`, Setting},
		{toobig, "", Capacity, Likely, "helps only as far as it can split off unused rests", Setting},
		{toobig, "expandable_segments:True", Capacity, Likely, "which is already on: it cannot help here", ""},
		{toobig, "roundup_power2_divisions:4", Capacity, Likely, "helps only as far as it can split off unused rests", Setting},
		{toobig, "roundup_power2_divisions:4,expandable_segments:True", Capacity, Likely, "it cannot help here", Setting},
	} {
		r := fromText(t, Input{Message: oom(t, tt.text), Believed: &tt.conf})
		if r.Trigger != tt.verdict || r.Confidence != tt.confidence {
			t.Errorf("%q: %s %s", tt.conf, r.Trigger, r.Confidence)
		}
		if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, tt.note) }) {
			t.Errorf("%q: no note %q in %q", tt.conf, tt.note, r.Notes)
		}
		has := slices.ContainsFunc(r.Alternatives, func(a Alternative) bool { return a.Verdict == tt.alternative })
		if has != (tt.alternative != "") {
			t.Errorf("%q: alternatives %v", tt.conf, r.Alternatives)
		}
	}
}

// TestGivenLimit: a limit that is given counts; one that the message, or its
// sums, exclude is an error that names what is possible.
func TestGivenLimit(t *testing.T) {
	r := fromText(t, Input{Message: oom(t, capped), Limit: 7609 << 20})
	if r.Trigger != Fragmentation || *r.Limit.Max != 7609<<20 || r.Limit.Source != "given" {
		t.Errorf("%s %s %+v", r.Trigger, r.Confidence, r.Limit)
	}
	unsaid := strings.Replace(capped, "7.43 GiB allowed; ", "", 1)
	for _, tt := range []struct {
		text  string
		limit uint64
		want  string
	}{
		{capped, 6 << 30, "the limit of 6.00 GiB cannot have been in force: the message says 7.43 GiB"},
		{unsaid, 6 << 30, "the limit of 6.00 GiB cannot have been in force: 6.75 GiB was reserved under it; it was between 6.75 GiB and 7.52 GiB"},
		{unsaid, 8 << 30, "the limit of 8.00 GiB cannot have been in force: a request was refused that 7.52 GiB would have allowed; it was between 6.75 GiB and 7.52 GiB"},
		{unsaid, 7609 << 20, ""},
	} {
		_, err := FromText(Input{Message: oom(t, tt.text), Limit: tt.limit})
		if said := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && said != tt.want {
			t.Errorf("%d: %v", tt.limit, err)
		}
	}
}

// TestNearlyFull: what needs all but less than a segment is not called
// fragmented; what leaves more is.
func TestNearlyFull(t *testing.T) {
	const rest = "GPU 0 has a total capacity of 139.80 GiB of which 90.00 GiB is free. "
	for _, tt := range []struct{ text, verdict string }{
		{"CUDA out of memory. Tried to allocate 20.00 MiB. " + rest + "1.17 GiB allowed; Of the allocated memory 1.15 GiB is allocated by PyTorch, and 10.90 MiB is reserved by PyTorch but unallocated.", NearlyFull},
		{"CUDA out of memory. Tried to allocate 512.00 MiB. " + rest + "8.00 GiB allowed; Of the allocated memory 7.49 GiB is allocated by PyTorch, and 400.00 MiB is reserved by PyTorch but unallocated.", NearlyFull},
		{"CUDA out of memory. Tried to allocate 512.00 MiB. " + rest + "8.00 GiB allowed; Of the allocated memory 7.40 GiB is allocated by PyTorch, and 400.00 MiB is reserved by PyTorch but unallocated.", Fragmentation},
	} {
		if r := fromText(t, Input{Message: oom(t, tt.text)}); r.Trigger != tt.verdict || strings.Contains(r.Summary, "nearly full") != (tt.verdict == NearlyFull) {
			t.Errorf("%s: %s", r.Trigger, r.Summary)
		}
	}
}

// TestRejected: 2.12's throw_on_cudamalloc_oom says what PyTorch held, not what
// tensors used.
func TestRejected(t *testing.T) {
	const text = "Preemptively rejecting allocation: requested 20.00 GiB but total_allocated_memory (60.00 GiB) + requested size would exceed memory limit (71.24 GiB = 90% of 79.15 GiB)"
	r := fromText(t, Input{Message: oom(t, text)})
	var open []string
	for _, a := range r.Alternatives {
		open = append(open, a.Verdict)
	}
	const want = "A request for 20.00 GiB was rejected before the driver was asked: with the 60.00 GiB that PyTorch held it is more than the limit of 71.24 GiB. How much of that tensors used is not said."
	if r.Trigger != Unknown || r.Summary != want || strings.Join(open, " ") != Capacity+" "+Fragmentation {
		t.Errorf("%s: %s\n%q", r.Trigger, r.Summary, open)
	}
}

func dump(values map[string]int64) *stats.Dump { return stats.FromValues(0, values) }

// TestSameMoment: the numbers of a dump that is of the moment of the failure are
// exact; one of another moment is used for its counters only.
func TestSameMoment(t *testing.T) {
	values := map[string]int64{
		"allocated_bytes.all.current": 6496000000, "reserved_bytes.all.current": 6496000000 + 746795827, "active_bytes.all.current": 6496000000,
		"num_ooms": 1, "num_alloc_retries": 1,
	}
	r := fromText(t, Input{Message: oom(t, capped), Stats: dump(values)})
	if *r.Evidence.Live != 6496000000 || *r.Evidence.Reserved != 6496000000+746795827 || *r.Evidence.Pending != 0 {
		t.Errorf("%d %d %v", *r.Evidence.Live, *r.Evidence.Reserved, r.Evidence.Pending)
	}
	values["allocated_bytes.all.current"], values["num_alloc_retries"] = 68157440, 0
	r = fromText(t, Input{Message: oom(t, capped), Stats: dump(values)})
	if *r.Evidence.Live == 68157440 || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "was not made at the failure") }) {
		t.Errorf("%d, %q", *r.Evidence.Live, r.Notes)
	}
	if r.Trigger != Pools || r.Confidence != Likely || !strings.Contains(r.Summary, "use_mem_pool") {
		t.Errorf("no flush: %s %s: %s", r.Trigger, r.Confidence, r.Summary)
	}
}

// TestFacts: what the recorder wrote down is exact, without a message too.
func TestFacts(t *testing.T) {
	device, number := 0, func(n uint64) *uint64 { return &n }
	facts := &recorder.Facts{
		Reason: recorder.OOM, Device: &device, RequestBytes: number(1 << 30), SegmentBytes: number(1 << 30), DeviceFreeBytes: number(70 << 30),
		LimitBytes: number(8 << 30), LimitKnown: true, Devices: []recorder.Device{{Index: 0, TotalBytes: number(80 << 30), LimitBytes: number(8 << 30), LimitKnown: true}},
	}
	for _, tt := range []struct {
		live, reserved      int64
		requested           int64
		verdict, confidence string
	}{
		{7<<30 + 1, 7<<30 + 2<<20, 0, Capacity, Likely}, // not known how much of it is padding
		{7<<30 + 1, 7<<30 + 2<<20, 7 << 30, Capacity, Likely},
		{7<<30 + 400<<20, 7<<30 + 400<<20, 7<<30 + 399<<20, Capacity, Certain},
		{7 << 30, 7<<30 + 2<<20, 7 << 30, NearlyFull, Open}, // exactly full would do
	} {
		r := fromText(t, Input{Facts: facts, Stats: dump(map[string]int64{
			"allocated_bytes.all.current": tt.live, "reserved_bytes.all.current": tt.reserved, "active_bytes.all.current": tt.live, "requested_bytes.all.current": tt.requested,
			"num_ooms": 1, "num_alloc_retries": 1,
		})})
		if r.Trigger != tt.verdict || r.Confidence != tt.confidence || !r.Capped || r.Limit.Source != "recorded" || *r.Evidence.Rounded != 1<<30 {
			t.Errorf("%d: %s %s %v %+v", tt.live, r.Trigger, r.Confidence, r.Capped, r.Limit)
		}
	}
	facts.Late = true // the dump may be of any moment then
	r := fromText(t, Input{Facts: facts, Stats: dump(map[string]int64{"allocated_bytes.all.current": 1 << 30, "reserved_bytes.all.current": 2 << 30, "num_ooms": 1})})
	if r.Trigger != Unknown || r.Evidence.Live != nil {
		t.Errorf("late: %s, live %v", r.Trigger, r.Evidence.Live)
	}
}

// TestVariety: the message and the statistics of recorded runs.
func TestVariety(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "variety", "*.side.json"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dumps, err := stats.ParseAll(raw)
		if err != nil || len(dumps) == 0 {
			t.Fatal(file, err)
		}
		in := Input{Stats: dumps[0]}
		if all, err := message.Parse(string(raw)); err == nil {
			in.Message = all[0]
		}
		r := fromText(t, in)
		switch strings.TrimSuffix(filepath.Base(file), ".side.json") {
		case "expand_tight":
			if r.Trigger != Capacity || r.Confidence != Certain || !r.Capped {
				t.Errorf("%s: %s %s %v", file, r.Trigger, r.Confidence, r.Capped)
			}
			allocated := uint64(dumps[0].Values["allocated_bytes.all.current"])
			if *r.Evidence.Live != allocated {
				t.Errorf("%s: live %d, was %d", file, *r.Evidence.Live, allocated)
			}
			on := "expandable_segments:True"
			in.Believed = &on
			if r := fromText(t, in); !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "which is already on") }) {
				t.Errorf("%s: %q", file, r.Notes)
			}
		default:
			if in.Message != nil {
				continue
			}
			if r.Trigger != None || r.Confidence != Certain || r.Health == nil || r.Health.PeakReserved != uint64(dumps[0].Values["reserved_bytes.all.peak"]) || r.Health.Headroom != nil {
				t.Errorf("%s: %s %s %+v", file, r.Trigger, r.Confidence, r.Health)
			}
		}
	}
}

// TestDumpOnly: a dump without a message.
func TestDumpOnly(t *testing.T) {
	base := map[string]int64{
		"allocated_bytes.all.current": 3 << 30, "allocated_bytes.all.peak": 5 << 30, "reserved_bytes.all.current": 6 << 30, "reserved_bytes.all.peak": 6 << 30,
		"active_bytes.all.current": 3<<30 + 100<<20, "requested_bytes.all.current": 3 << 30, "inactive_split_bytes.all.current": 1 << 30, "max_split_size": 128 << 20,
	}
	for _, tt := range []struct {
		ooms, retries       int64
		verdict, confidence string
	}{{0, 0, None, Certain}, {0, 3, None, Certain}, {2, 3, Unknown, Open}, {1, 0, Pools, Open}} {
		values := map[string]int64{"num_ooms": tt.ooms, "num_alloc_retries": tt.retries}
		for k, v := range base {
			values[k] = v
		}
		r := fromText(t, Input{Stats: dump(values), Limit: 8 << 30})
		if r.Trigger != tt.verdict || r.Confidence != tt.confidence {
			t.Errorf("%d ooms, %d retries: %s %s", tt.ooms, tt.retries, r.Trigger, r.Confidence)
		}
		if *r.Evidence.Live != 3<<30 || *r.Evidence.Pending != 100<<20 || *r.Evidence.Free != 6<<30-3<<30-100<<20 {
			t.Errorf("evidence %d %d %d", *r.Evidence.Live, *r.Evidence.Pending, *r.Evidence.Free)
		}
		all := strings.Join(r.Arithmetic, "\n")
		for _, want := range []string{"= 3.00 GiB reserved but unallocated", "pending", "1.00 GiB of the unallocated memory is free beside tensors", "lost to rounding", "max_split_size_mb is set: 128.00 MiB"} {
			if !strings.Contains(all, want) {
				t.Errorf("no %q in\n%s", want, all)
			}
		}
		if tt.verdict != None {
			continue
		}
		if h := r.Health; h == nil || *h.Headroom != 2<<30 || *h.FragmentationPeak != 0.5 || *h.Fragmentation != 1-5./6 || h.Retries != tt.retries || h.PeakAllocated != 5<<30 {
			t.Errorf("health %+v", r.Health)
		}
	}
	delete(base, "max_split_size")
	if r := fromText(t, Input{Stats: dump(base)}); r.Trigger != None || r.Confidence != Open {
		t.Errorf("without counters: %s %s", r.Trigger, r.Confidence)
	}
}

func TestNothing(t *testing.T) {
	if _, err := FromText(Input{}); err == nil {
		t.Error("something is explained")
	}
}

// TestRecord: every text on a CUDA device ends with the lines to record.
func TestRecord(t *testing.T) {
	r := fromText(t, Input{Message: oom(t, capped)})
	all := strings.Join(r.Record, "\n")
	for _, want := range []string{"ashlar.record()", "torch.cuda.memory._record_memory_history(", "torch.cuda.memory._dump_snapshot("} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// TestRequestOf: what a segment tells of its request.
func TestRequestOf(t *testing.T) {
	for _, tt := range []struct {
		tried     string
		low, high uint64
	}{
		{"2.00 MiB", 512, 1 << 20},
		{"20.00 MiB", 1 << 20, 20 << 20},
		{"10.00 MiB", 8 << 20, 10 << 20},
		{"786.00 MiB", 784 << 20, 786 << 20},
	} {
		a := &textEvidence{Input: Input{Message: oom(t, "CUDA out of memory. Tried to allocate "+tt.tried+". GPU 0 has a total capacity of 139.80 GiB of which 77.15 GiB is free.")}, report: newReport()}
		a.collect()
		if a.request.Low != tt.low || a.request.High != tt.high {
			t.Errorf("%s: %d to %d", tt.tried, a.request.Low, a.request.High)
		}
	}
}

// TestContradiction: numbers that cannot be true together, or at all, prove
// nothing, and the first sentence names them.
func TestContradiction(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{
			"CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 10.00 GiB of which 9.00 GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 7.00 GiB is reserved by PyTorch but unallocated.",
			"27.00 GiB reserved on a device of 10.00 GiB with 9.00 GiB free",
		},
		{
			"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is free. Of the allocated memory 60.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
			"61.00 GiB reserved on a device of 24.00 GiB with 1.00 GiB free",
		},
		{
			"CUDA out of memory. Tried to allocate 1" + strings.Repeat("0", 30) + " bytes. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
			"\"Tried to allocate 1" + strings.Repeat("0", 30) + " bytes\" is more than any device has",
		},
		{
			"CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB total capacity; 6.00 GiB already allocated; 12.00 GiB free; 5.00 GiB reserved in total by PyTorch)",
			"5.00 GiB reserved cannot hold 6.00 GiB allocated; 12.00 GiB free on a device of 8.00 GiB",
		},
	} {
		r := fromText(t, Input{Message: oom(t, tt.text)})
		if r.Trigger != Unknown || r.Confidence != Open || !strings.HasPrefix(r.Summary, "The numbers of the text cannot all be true: "+tt.want+".") {
			t.Errorf("%s %s: %s", r.Trigger, r.Confidence, r.Summary)
		}
	}
}

// TestPadding: 1,000 tensors of 11.2 MiB in blocks of 12 MiB: expandable
// segments split the rests off, and then the request fits.
func TestPadding(t *testing.T) {
	text := "CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 100.00 GiB is free. 11.72 GiB allowed; Of the allocated memory 11.72 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
	for _, tt := range []struct {
		requested  int64
		confidence string
	}{{0, Likely}, {11200 << 20, Likely}, {12000 << 20, Certain}} {
		in := Input{Message: oom(t, text)}
		if tt.requested > 0 {
			in.Stats = dump(map[string]int64{
				"allocated_bytes.all.current": 12000 << 20, "reserved_bytes.all.current": 12000 << 20, "active_bytes.all.current": 12000 << 20, "requested_bytes.all.current": tt.requested,
				"num_ooms": 1, "num_alloc_retries": 1,
			})
		}
		r := fromText(t, in)
		if r.Trigger != Capacity || r.Confidence != tt.confidence || strings.Contains(r.Summary, "No allocator setting helps") != (tt.confidence == Certain) {
			t.Errorf("%d requested: %s %s: %s", tt.requested, r.Trigger, r.Confidence, r.Summary)
		}
	}
}
