package replay_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Recordings of random work, much of it out of memory, as programs: run under
// their own settings they do again what was recorded; under others nothing
// breaks, and what does not depend on the settings stays the same.
func TestRecordingsAsPrograms(t *testing.T) {
	files, err := filepath.Glob("../../testdata/oracle/*.json.gz")
	if err != nil || len(files) != 54 {
		t.Fatal(len(files), err)
	}
	var others []settings.Settings
	for _, conf := range []string{
		"", "expandable_segments:True", "max_split_size_mb:64,garbage_collection_threshold:0.7",
		"roundup_power2_divisions:[64:2,256:4,>:8],max_split_size_mb:128,expandable_segments:True",
		"large_segment_size_mb:64,max_non_split_rounding_mb:128,max_split_size_mb:80",
	} {
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, s)
	}
	for _, file := range short.Files(t, files, 4) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, err := oracle.Load(t.Context(), oracle.File(file))
			if err != nil {
				t.Fatal(err)
			}
			tr, err := rec.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			p := programOf(t, tr)
			if !p.Check.Identical || p.Ignored != 0 {
				t.Fatalf("%d of %d events identical, %d ignored", p.Check.IdenticalEvents, p.Check.Events, p.Ignored)
			}
			own, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, Limit: limitOf(p), SkipOOM: true})
			if err != nil {
				t.Fatal(err)
			}
			want, got := p.Check.Stats, own.Stats.Map()
			if p.Waits() {
				forgetOrder(want, got)
			}
			// Without stacks a collection cannot be told from an empty_cache: then
			// the limit is not the recorded one.
			unclear := p.Check.CollectLimit > 0 && p.Check.Limit.Max == 0
			if d := cmp.Diff(want, got); d != "" && !unclear {
				t.Errorf("under its own settings, limit %d of %+v (-check +run):\n%s", limitOf(p), p.Check.Limit, d)
			}
			for _, s := range others {
				for _, limit := range []uint64{0, 3 << 30} {
					tryAll(t, p, replay.Conditions{Settings: s, Limit: limit, SkipOOM: true, Points: 7}, own)
				}
			}
		})
	}
}

// limitOf returns a limit under which a program does what was recorded: one at
// which garbage was collected, or the upper end of what was refused.
func limitOf(p *replay.Program) uint64 {
	if p.Check.CollectLimit > 0 {
		return p.Check.CollectLimit
	}
	return p.Check.Limit.Max
}

// tryAll runs a program to its end and looks at the allocator.
func tryAll(t *testing.T, p *replay.Program, c replay.Conditions, own *replay.Outcome) {
	t.Helper()
	o, err := p.RunChecked(t.Context(), c)
	if err != nil {
		t.Fatalf("%s, limit %d: %v", c.Settings, c.Limit, err)
	}
	if o.Calls != p.Len() || o.Fails != (o.OOMs > 0) || len(o.Curve) != 7 {
		t.Errorf("%s: %d of %d calls, %d failures, %d points", c.Settings, o.Calls, p.Len(), o.OOMs, len(o.Curve))
	}
	if c.Limit == 0 && !own.Fails && !o.Fails && o.Requested != own.Requested {
		t.Errorf("%s: the peak of requested bytes is %+v, under the recorded settings %+v", c.Settings, o.Requested, own.Requested)
	}
}

// A program that begins mid-run begins with what was there.
func TestMidRun(t *testing.T) {
	for _, file := range []string{"variety/midrun", "variety/ring"} {
		p := checked(t, file)
		if p.Start.Kind != start.Rebuilt || p.Initial() == 0 {
			t.Fatalf("%s starts %s", file, p.Start.Kind)
		}
		for _, conf := range []string{"expandable_segments:True", "max_split_size_mb:128"} {
			s, err := settings.Parse(conf)
			if err != nil {
				t.Fatal(err)
			}
			o, err := p.Run(t.Context(), replay.Conditions{Settings: s})
			if err != nil {
				t.Fatalf("%s %s: %v", file, conf, err)
			}
			if o.Fails || o.Reserved.Bytes < p.Start.Reserved() {
				t.Errorf("%s %s: %+v", file, conf, o)
			}
		}
	}
}

// An expandable start is taken over too, and given back.
func TestMidRunExpandable(t *testing.T) {
	p := checked(t, "variety/expand")
	half := cutFront(p.Trace, p.Trace.Events.Len()/2)
	q := programOf(t, half)
	if !q.Check.Identical || q.Start.Kind != start.Rebuilt {
		t.Fatalf("%d of %d events identical, start %s", q.Check.IdenticalEvents, q.Check.Events, q.Start.Kind)
	}
	for _, conf := range []string{"expandable_segments:True", "", "expandable_segments:True,large_segment_size_mb:64"} {
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		// A limit below the peak makes it release what it began with.
		o, err := q.Run(t.Context(), replay.Conditions{Settings: s, Limit: 15 << 30, SkipOOM: true})
		if err != nil {
			t.Fatalf("%q: %v", conf, err)
		}
		if o.Retries == 0 {
			t.Errorf("%q: nothing had to be released: %d reserved", conf, o.Reserved.Bytes)
		}
	}
}

// cutFront returns a trace without its first events.
func cutFront(tr *trace.Trace, n int) *trace.Trace {
	out := *tr
	out.Events = trace.Events{}
	for i := n; i < tr.Events.Len(); i++ {
		out.Events.Copy(&tr.Events, i)
	}
	return &out
}

func TestCalls(t *testing.T) {
	p := verify.ReadProgram(recipe(1))
	var kinds []replay.CallKind
	for i := range p.Len() {
		kinds = append(kinds, p.Call(i).Kind)
	}
	want := []replay.CallKind{replay.CallAlloc, replay.CallAlloc, replay.CallAlloc, replay.CallAlloc, replay.CallFree, replay.CallFree}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
	if c := p.Call(4); c.Tensor != 1 || c.Event != 4 {
		t.Errorf("the first free is %+v", c)
	}
	if c := p.Call(2); c.Size != 91<<20/2 || c.Tensor != 2 || c.Event != 2 {
		t.Errorf("the third allocation is %+v", c)
	}
}

// Wherever a ring begins, the state there is rebuilt and the rest replays. A
// block that is freed before anything is allocated behind it may have been
// larger than thought, by up to 1 MiB, and rarely that matters.
func TestCutAnywhere(t *testing.T) {
	short.Skip(t)
	for _, file := range []string{"variety/expand", "snapshots/leak_graph-tight-default", "variety/split", "fresh/unet_multires-default"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			tr := checked(t, file).Trace
			n, parted := tr.Events.Len(), 0
			for k := 1; k < 24; k++ {
				cut := n*k/24 + k%3
				p := programOf(t, cutFront(tr, cut))
				if !p.Check.Identical {
					parted++
					t.Logf("cut at %d: %d of %d events identical: %v", cut, p.Check.IdenticalEvents, p.Check.Events, p.Check.First)
				}
				s := settings.Default()
				s.ExpandableSegments = !p.Settings.ExpandableSegments
				if _, err := p.Run(t.Context(), replay.Conditions{Settings: s, SkipOOM: true}); err != nil {
					t.Errorf("cut at %d, other settings: %v", cut, err)
				}
			}
			if parted > 1 {
				t.Errorf("%d of 23 cuts do not replay", parted)
			}
		})
	}
}
