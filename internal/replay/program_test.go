package replay

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, err := Load(t.Context(), File(file))
			if err != nil {
				t.Fatal(err)
			}
			p, err := CheckProgram(t.Context(), asTrace(t, rec))
			if err != nil {
				t.Fatal(err)
			}
			if !p.Check.Identical || p.Ignored != 0 {
				t.Fatalf("%d of %d events identical, %d ignored", p.Check.IdenticalEvents, p.Check.Events, p.Ignored)
			}
			own, err := p.Run(t.Context(), Conditions{Settings: p.Settings, Limit: limitOf(p), SkipOOM: true})
			if err != nil {
				t.Fatal(err)
			}
			want, got := p.Check.Stats, own.Stats.Map()
			if p.waits > 0 {
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
					p.tryAll(t, Conditions{Settings: s, Limit: limit, SkipOOM: true, Points: 7}, own)
				}
			}
		})
	}
}

// limitOf is a limit under which a program does what was recorded: one at which
// garbage was collected, or the upper end of what was refused.
func limitOf(p *Program) uint64 {
	if p.Check.CollectLimit > 0 {
		return p.Check.CollectLimit
	}
	return p.Check.Limit.Max
}

// tryAll runs a program to its end and looks at the allocator.
func (p *Program) tryAll(t *testing.T, c Conditions, own *Outcome) {
	t.Helper()
	r, err := p.simulate(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.run(context.Background()); err != nil {
		t.Fatalf("%s, limit %d: %v", c.Settings, c.Limit, err)
	}
	if err := r.a.CheckInvariants(); err != nil {
		t.Fatalf("%s, limit %d: %v", c.Settings, c.Limit, err)
	}
	o := r.finish()
	if o.Calls != p.Len() || o.Fails != (o.OOMs > 0) || len(o.Curve) != 7 {
		t.Errorf("%s: %d of %d calls, %d failures, %d points", c.Settings, o.Calls, p.Len(), o.OOMs, len(o.Curve))
	}
	if c.Limit == 0 && !own.Fails && !o.Fails && o.Requested != own.Requested {
		t.Errorf("%s: the peak of requested bytes is %+v, under the recorded settings %+v", c.Settings, o.Requested, own.Requested)
	}
	if held := r.dev.Held(); held != uint64(o.Stats.ReservedBytes.All.Current) {
		t.Errorf("%s: %d reserved, the device has given %d", c.Settings, o.Stats.ReservedBytes.All.Current, held)
	}
}

// A program that begins mid-run begins with what was there.
func TestMidRun(t *testing.T) {
	for _, file := range []string{"variety/midrun", "variety/ring"} {
		p := checked(t, file)
		if p.Start.Kind != StartRebuilt || p.Initial() == 0 {
			t.Fatalf("%s starts %s", file, p.Start.Kind)
		}
		for _, conf := range []string{"expandable_segments:True", "max_split_size_mb:128"} {
			s, err := settings.Parse(conf)
			if err != nil {
				t.Fatal(err)
			}
			o, err := p.Run(t.Context(), Conditions{Settings: s})
			if err != nil {
				t.Fatalf("%s %s: %v", file, conf, err)
			}
			if o.Fails || o.Reserved.Bytes < p.startBytes() {
				t.Errorf("%s %s: %+v", file, conf, o)
			}
		}
	}
}

func (p *Program) startBytes() (n uint64) {
	for _, s := range p.Start.Segments {
		n += s.TotalSize
	}
	return n
}

// An expandable start is taken over too, and given back.
func TestMidRunExpandable(t *testing.T) {
	p := checked(t, "variety/expand")
	half := cutFront(p.Trace, p.Trace.Events.Len()/2)
	q, err := CheckProgram(t.Context(), half)
	if err != nil {
		t.Fatal(err)
	}
	if !q.Check.Identical || q.Start.Kind != StartRebuilt {
		t.Fatalf("%d of %d events identical, start %s", q.Check.IdenticalEvents, q.Check.Events, q.Start.Kind)
	}
	for _, conf := range []string{"expandable_segments:True", "", "expandable_segments:True,large_segment_size_mb:64"} {
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		// A limit below the peak makes it release what it began with.
		o, err := q.Run(t.Context(), Conditions{Settings: s, Limit: 15 << 30, SkipOOM: true})
		if err != nil {
			t.Fatalf("%q: %v", conf, err)
		}
		if o.Retries == 0 {
			t.Errorf("%q: nothing had to be released: %d reserved", conf, o.Reserved.Bytes)
		}
	}
}

// cutFront is a trace without its first events.
func cutFront(tr *trace.Trace, n int) *trace.Trace {
	out := *tr
	out.Events = trace.Events{}
	for i := n; i < tr.Events.Len(); i++ {
		out.Events.Copy(&tr.Events, i)
	}
	return &out
}

func TestCalls(t *testing.T) {
	p := ReadProgram(recipe(1))
	var kinds []CallKind
	for i := range p.Len() {
		kinds = append(kinds, p.Call(i).Kind)
	}
	want := []CallKind{CallAlloc, CallAlloc, CallAlloc, CallAlloc, CallFree, CallFree}
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
	for _, file := range []string{"variety/expand", "snapshots/leak_graph-tight-default", "variety/split", "fresh/unet_multires-default"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			tr := checked(t, file).Trace
			n, parted := tr.Events.Len(), 0
			for k := 1; k < 24; k++ {
				cut := n*k/24 + k%3
				p, err := CheckProgram(t.Context(), cutFront(tr, cut))
				if err != nil {
					t.Fatal(err)
				}
				if !p.Check.Identical {
					parted++
					t.Logf("cut at %d: %d of %d events identical: %v", cut, p.Check.IdenticalEvents, p.Check.Events, p.Check.First)
				}
				s := settings.Default()
				s.ExpandableSegments = !p.Settings.ExpandableSegments
				if _, err := p.Run(t.Context(), Conditions{Settings: s, SkipOOM: true}); err != nil {
					t.Errorf("cut at %d, other settings: %v", cut, err)
				}
			}
			if parted > 1 {
				t.Errorf("%d of 23 cuts do not replay", parted)
			}
		})
	}
}
