package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
)

// byPreset is a question about the toy model as the preset runs it.
func byPreset(t testing.TB, pairs ...string) Question {
	t.Helper()
	return Question{Model: toyModel(t), Options: options(t, pairs...), Settings: settings.Default(), NoLevers: true}
}

// Some jobs cannot be run with the smallest sequences, or with all of them: the
// search steps over those.
func TestFindLargestStepsOver(t *testing.T) {
	for _, tt := range []struct {
		option, value string
		unit          int64
	}{
		{"loss", "chunked:64", 1}, {"attention", "cudnn", 1}, {"shard", "cp:2", 2}, {"shard", "tp:2,sp:2", 2}, {"shard", "cp:3,tp:2,sp:2", 6},
	} {
		q := byPreset(t, "batch", "1", tt.option, tt.value)
		q.Capacity.Limit = 600 << 20
		l, err := FindLargest(t.Context(), q, "seq")
		if err != nil {
			t.Errorf("%s %s: %v", tt.option, tt.value, err)
			continue
		}
		if l.Value < 2*tt.unit || l.Value%tt.unit != 0 || l.Next != l.Value+tt.unit || !strings.Contains(l.Why, "out of memory") {
			t.Errorf("%s %s: %+v", tt.option, tt.value, l)
		}
	}
	// What no sequence mends is an error.
	q := byPreset(t, "batch", "1", "attention", "flash", "dtype", "fp32")
	q.Capacity.Limit = 600 << 20
	if _, err := FindLargest(t.Context(), q, "seq"); err == nil || !strings.Contains(err.Error(), "takes bf16 and fp16 only") {
		t.Error(err)
	}
}

// A run that fits by giving cached memory back stays within its room, and the
// answer says so.
func TestLimited(t *testing.T) {
	q := byPreset(t, "batch", "4", "seq", "1000", "loss", "chunked:256")
	q.NoLevers = true
	a := ask(t, q)
	if a.Limited != nil || a.Tight {
		t.Errorf("without a room: %+v", a.Limited)
	}
	if a.SmallestLimit >= a.PeakReserved {
		t.Fatal("this run has nothing cached to give back")
	}
	q.Capacity.Limit = a.SmallestLimit
	b := ask(t, q)
	if b.Limited == nil || b.Limited.PeakReserved > q.Capacity.Limit || b.Limited.Retries == 0 || b.PeakReserved != a.PeakReserved || !b.Tight {
		t.Errorf("within the smallest limit: %+v, tight %v", b.Limited, b.Tight)
	}
	q.Capacity.Limit = 2 * a.PeakReserved
	b = ask(t, q)
	if b.Limited == nil || b.Limited.PeakReserved != a.PeakReserved || b.Limited.Retries != 0 || b.Tight {
		t.Errorf("with much room: %+v, tight %v", b.Limited, b.Tight)
	}
	q.Capacity.Limit = a.PeakAllocated / 2
	if b = ask(t, q); *b.Fits || b.Limited != nil {
		t.Errorf("with too little: %+v", b.Limited)
	}
	q.Capacity.Limit = a.SmallestLimit
	l, err := FindLargest(t.Context(), q, "batch")
	if err != nil || l.Limited == nil || l.Limited.PeakReserved > q.Capacity.Limit {
		t.Errorf("%+v %v", l, err)
	}
	cells, err := Sweep(t.Context(), q, []Axis{{"batch", []string{"4"}}})
	if err != nil || cells[0].Limited == nil || cells[0].Limited.Retries == 0 {
		t.Errorf("%+v %v", cells, err)
	}
}

// A job may be as much too large as it likes: that is an answer.
func TestFarTooLarge(t *testing.T) {
	short.Skip(t)
	for _, conf := range []string{"", "expandable_segments:True"} {
		q := under(t, byPreset(t, "batch", "256", "seq", "4096"), conf)
		q.NoLevers = false
		q.Capacity.Card = gpuOf(t, "h200")
		a := ask(t, q)
		if *a.Fits || a.PeakAllocated < 500<<30 || a.Failure == nil {
			t.Errorf("%q: fits %v, %d bytes", conf, *a.Fits, a.PeakAllocated)
		}
		if _, err := Trace(t.Context(), Question{Model: q.Model, Options: q.Options, Settings: q.Settings, Conf: conf}); err != nil {
			t.Errorf("%q: %v", conf, err)
		}
	}
	_, err := Ask(t.Context(), byPreset(t, "batch", "500000", "seq", "2048"))
	if err == nil || !strings.Contains(err.Error(), "more than the 15360.00 GiB of addresses that a plan has") {
		t.Error(err)
	}
}

// The trace of a run that does not fit ends with the request that fails.
func TestTraceUnderLimit(t *testing.T) {
	q := question(t, "batch", "4", "seq", "1000")
	q.NoLevers = true
	whole := written(t, q)
	q.Capacity.Limit = ask(t, q).SmallestLimit * 3 / 4
	a := ask(t, q)
	tr := written(t, q)
	n := tr.Events.Len()
	if last := tr.Events.At(n - 1); last.Action != alloc.ActionOOM || last.Size < a.Failure.Bytes || n >= whole.Events.Len() {
		t.Errorf("%d of %d events, the last %+v; the plan fails at %+v", n, whole.Events.Len(), last, a.Failure)
	}
	var reserved uint64
	for _, s := range tr.Segments {
		reserved += s.TotalSize
	}
	if reserved != a.Failure.Reserved {
		t.Errorf("%d bytes are reserved at the end, planned %d", reserved, a.Failure.Reserved)
	}
}

// Where no lever alone is enough, some are pulled together, none of them
// without need.
func TestTogether(t *testing.T) {
	short.Skip(t)
	q := byPreset(t, "batch", "16", "seq", "1024")
	q.NoLevers = false
	q.Capacity.Limit = 1 << 30
	a := ask(t, q)
	last := a.Levers[len(a.Levers)-1]
	if *a.Fits || !strings.HasPrefix(last.Name, "together: ") || !*last.Fits {
		t.Fatalf("%+v", a.Levers)
	}
	for _, l := range a.Levers[:len(a.Levers)-1] {
		if *l.Fits {
			t.Errorf("%s fits alone", l.Name)
		}
	}
	// Its flags are a plan that fits, with that saving; fewer of them are not.
	fields := strings.Fields(last.Flags)
	given := func(leave int) Question {
		c := q
		c.NoLevers = true
		for i := 0; i+1 < len(fields); i += 2 {
			switch name := strings.TrimPrefix(fields[i], "--"); {
			case i == leave:
			case name == "settings":
				c = under(t, c, fields[i+1])
			default:
				c.Options = c.Options.with(name, fields[i+1])
			}
		}
		return c
	}
	if b := ask(t, given(-1)); !*b.Fits || a.PeakAllocated-b.PeakAllocated != last.Saving {
		t.Errorf("%s: fits %v, saves %d, not %d", last.Flags, *b.Fits, a.PeakAllocated-b.PeakAllocated, last.Saving)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "--accumulate" {
			continue // belongs to the batch
		}
		if b := ask(t, given(i)); *b.Fits {
			t.Errorf("%s: it fits without %s", last.Flags, fields[i])
		}
	}
	// One that is enough alone needs no others.
	q.Capacity.Limit = a.SmallestLimit - 1<<20
	for _, l := range ask(t, q).Levers {
		if strings.HasPrefix(l.Name, "together") {
			t.Error(fmt.Sprint(l))
		}
	}
}

// A choice of one layer less in longer groups is found beside what the estimate
// of single layers proposes.
func TestFindRecomputeLongerGroups(t *testing.T) {
	short.Skip(t)
	q := byPreset(t, "batch", "3", "seq", "4096")
	q.Model = readModel(t, `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false, "dtype": "bfloat16"}`)
	q.Capacity.Limit = 80 << 30
	b, err := FindRecompute(t.Context(), q)
	if err != nil || !b.Best.Fits || len(b.Best.Layers) > 26 {
		t.Errorf("%+v %v", b.Best, err)
	}
	q.Options = q.Options.with("use-cache", "true")
	if _, err := FindRecompute(t.Context(), q); err == nil || !strings.Contains(err.Error(), "use-cache with recompute best: ") {
		t.Error(err)
	}
}
