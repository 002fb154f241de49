package plan

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

func ask(t testing.TB, q Question) *Answer {
	t.Helper()
	a, err := Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnswer(t *testing.T) {
	q := question(t, "batch", "4", "seq", "1000", "attention", "sdpa", "optimizer", "adamw-fused")
	q.Points = 40
	a := ask(t, q)
	var sum uint64
	for _, c := range a.Components {
		sum += c.Bytes
	}
	if sum != a.PeakAllocated {
		t.Errorf("components sum to %d, the peak is %d", sum, a.PeakAllocated)
	}
	// Weights 8, state 16, activations and the loss with its gradient.
	weights := uint64(8 * 512 * 512 * 24)
	logits := uint64(4 * 1000 * 32000 * 2)
	acts := uint64(8 * 4 * 1000 * 512 * 32)
	if want := 3*weights + 2*logits + acts + 4*1000*8; a.PeakRequested != want {
		t.Errorf("requested %d, by hand %d", a.PeakRequested, want)
	}
	want := map[string]uint64{"parameters": weights, "optimizer state": 2 * weights, "loss": 2 * logits, "activations": acts, "inputs": 32000}
	for _, c := range a.Components {
		if c.Name != rounding && want[c.Name] != c.Bytes {
			t.Errorf("%s: %d, by hand %d", c.Name, c.Bytes, want[c.Name])
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing %v", want)
	}
	if a.BindingPhase != "loss" || a.BindingStep != 3 {
		t.Errorf("binds in %s %d", a.BindingPhase, a.BindingStep)
	}
	if a.PeakAllocated < a.PeakRequested || a.PeakReserved < a.PeakAllocated || a.SmallestLimit > a.PeakReserved {
		t.Errorf("%+v", a)
	}
	if a.Range.Low > a.PeakAllocated || a.Range.High < a.PeakAllocated || a.Range.ReservedLow > a.PeakReserved || a.Range.ReservedHigh < a.PeakReserved {
		t.Errorf("%+v", a.Range)
	}
	if width := float64(a.Range.High-a.Range.Low) / float64(a.PeakAllocated); width > 0.05 {
		t.Errorf("the range is %.1f %% wide", 100*width)
	}
	if a.Fits != nil || a.Available != nil || !a.Measured || !a.ContextEstimated || a.PeakDevice != a.PeakReserved+a.Context {
		t.Errorf("%+v", a)
	}
	if n := len(a.Timeline.Allocated); n != 40 || slices.Max(a.Timeline.Allocated) != a.PeakAllocated || slices.Max(a.Timeline.Reserved) != a.PeakReserved {
		t.Errorf("timeline of %d points: %+v", n, a.Timeline)
	}
	var phases []string
	for _, s := range a.Timeline.Phases {
		phases = append(phases, s.Name)
	}
	if got := strings.Join(phases, " "); got != "forward loss backward optimizer" {
		t.Errorf("phases %q", got)
	}
}

// The smallest limit passes and 2 MiB less does not; fits says the same.
func TestSmallestLimit(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:64", "garbage_collection_threshold:0.8"} {
		q := question(t, "batch", "3", "seq", "777", "accumulate", "2")
		q = under(t, q, conf)
		a := ask(t, q)
		for _, tt := range []struct {
			limit uint64
			fits  bool
		}{{a.SmallestLimit, true}, {a.SmallestLimit - 2<<20, false}} {
			q.Capacity.Limit = tt.limit
			b := ask(t, q)
			if b.Fits == nil || *b.Fits != tt.fits {
				t.Errorf("%q: under %d fits is %v", conf, tt.limit, b.Fits)
			}
			if tt.fits == (b.Failure != nil) {
				t.Errorf("%q: failure %+v", conf, b.Failure)
			}
			if *b.Headroom != int64(tt.limit)-int64(a.SmallestLimit) {
				t.Errorf("%q: headroom %d", conf, *b.Headroom)
			}
		}
	}
}

// The search for the smallest limit takes short cuts. Trying every limit finds
// the same.
func TestSmallestLimitByHand(t *testing.T) {
	q := question(t, "batch", "1", "seq", "300")
	p, _, err := q.plan(t.Context(), q.Options, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := ask(t, q).SmallestLimit
	passes := func(limit uint64) bool {
		o, err := p.program.Run(t.Context(), replay.Conditions{Settings: q.Settings, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		return !o.Fails
	}
	least := uint64(0)
	for limit := uint64(2 << 20); limit <= p.reserved; limit += 2 << 20 {
		if passes(limit) {
			least = limit
			break
		}
	}
	if !passes(got) || passes(got-2<<20) || got < least {
		t.Errorf("found %d, the first that passes is %d", got, least)
	}
}

func TestRoom(t *testing.T) {
	q := question(t, "batch", "4", "seq", "1000")
	need := ask(t, q).SmallestLimit
	q.Capacity.Card = gpuOf(t, "4GiB")
	a := ask(t, q)
	if want := uint64(4<<30) - a.Context; *a.Available != want || *a.Headroom != int64(want)-int64(need) || !a.ContextEstimated {
		t.Errorf("%+v", a)
	}
	part := under(t, q, "per_process_memory_fraction:0.25")
	if a := ask(t, part); *a.Available != 1<<30 {
		t.Errorf("a quarter of 4 GiB is %d", *a.Available)
	}
	part.Capacity.Card = nil
	if _, err := Ask(t.Context(), part); err == nil || !strings.Contains(err.Error(), "give gpu") {
		t.Error(err)
	}
	q.Capacity.Limit = 1 << 30
	if a := ask(t, q); *a.Available != 1<<30 || *a.Fits != (need <= 1<<30) {
		t.Errorf("%+v", a)
	}
	q.Capacity = Capacity{Card: gpuOf(t, "h200")}
	if a := ask(t, q); a.ContextEstimated || a.Collectives != 0 {
		t.Errorf("%+v", a)
	}
	q.Options = options(t, "batch", "4", "seq", "1000", "shard", "ddp:1")
	if a := ask(t, q); a.Collectives == 0 || !a.Measured || a.PeakDevice != a.PeakReserved+a.Context+a.Collectives {
		t.Errorf("%+v", a)
	}
	q.Options = options(t, "batch", "4", "seq", "1000", "shard", "tp:2")
	if a := ask(t, q); a.Measured {
		t.Error("tensor parallelism was not measured")
	}
}

func TestLevers(t *testing.T) {
	q := question(t, "batch", "8", "seq", "1000", "optimizer", "adamw-foreach")
	a := ask(t, q)
	at := map[string]int{}
	for i, l := range a.Levers {
		at[l.Name] = i
		if l.Saving == 0 || l.Cost == "" || l.Flags == "" || l.Fits != nil {
			t.Errorf("%+v", l)
		}
		if l.Of != "allocated" {
			continue
		}
		// The flags are those that give the saving.
		changed := q
		changed.NoLevers = true
		fields := strings.Fields(l.Flags)
		for i := 0; i < len(fields); i += 2 {
			if err := changed.Options.Set(strings.TrimPrefix(fields[i], "--"), fields[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		b := ask(t, changed)
		if a.PeakAllocated-b.PeakAllocated != l.Saving || int64(a.PeakReserved)-int64(b.PeakReserved) != l.SavingReserved {
			t.Errorf("%s saves %d, and planned with %s %d", l.Name, l.Saving, l.Flags, a.PeakAllocated-b.PeakAllocated)
		}
	}
	for _, name := range []string{"chunk the loss", "full recompute", "half the batch, twice the accumulation"} {
		if _, ok := at[name]; !ok {
			t.Errorf("no lever %q in %+v", name, a.Levers)
		}
	}
	if at["chunk the loss"] > at["full recompute"] {
		t.Error("chunking the loss is cheaper than recomputing everything")
	}
	q.Capacity.Limit = a.PeakAllocated - 1<<20
	for _, l := range ask(t, q).Levers {
		if l.Fits == nil || l.Name == "half the batch, twice the accumulation" && !*l.Fits {
			t.Errorf("%+v", l)
		}
	}
}

// The names of the JSON document are promised.
func TestAnswerFields(t *testing.T) {
	q := question(t, "batch", "8", "seq", "1000")
	q.Capacity.Limit = 1 << 30
	data, err := json.Marshal(ask(t, q))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]reflect.Kind{
		"fits": reflect.Bool, "peak_allocated_bytes": reflect.Float64, "peak_reserved_bytes": reflect.Float64,
		"peak_device_bytes": reflect.Float64, "smallest_limit_bytes": reflect.Float64,
		"range.low_bytes": reflect.Float64, "range.high_bytes": reflect.Float64, "range.reasons": reflect.Slice, "range.reasons.0.name": reflect.String,
		"binding_phase": reflect.String, "components.0.name": reflect.String, "components.0.bytes": reflect.Float64,
		"levers.0.name": reflect.String, "levers.0.flags": reflect.String, "levers.0.saving_bytes": reflect.Float64, "levers.0.cost": reflect.String,
		"assumed": reflect.Slice, "not_modelled": reflect.Slice, "measured": reflect.Bool,
		"first_failure.phase": reflect.String, "headroom_bytes": reflect.Float64,
	} {
		var at any = doc
		for name := range strings.SplitSeq(path, ".") {
			switch x := at.(type) {
			case map[string]any:
				at = x[name]
			case []any:
				at = x[0]
			}
		}
		if got := reflect.ValueOf(at).Kind(); got != kind {
			t.Errorf("%s is %v (%v), want %v", path, at, got, kind)
		}
	}
}

// What the ledger marks as uncertain widens the range and is named.
func TestUncertainTerms(t *testing.T) {
	q := question(t, "batch", "4", "seq", "1000")
	before := ask(t, q)
	q.execute = func(ctx context.Context, j *model.Job) (*executed, error) {
		e, err := byHand(ctx, j)
		e.ledger.Uncertain = []ledger.Term{{Name: "a workspace", High: 8 << 20}}
		return e, err
	}
	a := ask(t, q)
	if a.Range.High != before.Range.High+8<<20 || a.Range.ReservedHigh != before.Range.ReservedHigh+8<<20 || a.Range.Low != before.Range.Low {
		t.Errorf("%+v after %+v", a.Range, before.Range)
	}
	if !slices.ContainsFunc(a.Range.Reasons, func(r Reason) bool { return r.Name == "a workspace" }) {
		t.Errorf("%+v", a.Range.Reasons)
	}
}
