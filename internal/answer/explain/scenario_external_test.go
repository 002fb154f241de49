package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/test/scenario"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

// knows tells the size of the device, as the recorder writes it down.
func knows(total uint64) explain.Input {
	return explain.Input{Facts: &recorder.Facts{Devices: []recorder.Device{{TotalBytes: &total}}}}
}

// said tells it as the message does.
func said(t *testing.T, total, free, segment, live uint64) explain.Input {
	t.Helper()
	text := fmt.Sprintf("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s. GPU 0 has a total capacity of %s of which %s is free. "+
		"Of the allocated memory %s is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
		units.Size(segment), units.Size(total), units.Size(free), units.Size(live))
	list, err := message.Parse(text)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d messages in %q: %v", len(list), text, err)
	}
	return explain.Input{Message: list[0]}
}

// What other processes hold decides between a device that is too small and one
// that is not PyTorch's alone.
func TestExternal(t *testing.T) {
	const live, request = 12 * gib, 6 * gib
	for _, tt := range []struct {
		name    string
		total   uint64
		outside uint64
		limit   uint64
		trigger string
		why     string
	}{
		{"another process", 80 * gib, 64 * gib, 0, explain.External, "18 GiB would fit on 80, but 64 belong to somebody else"},
		{"just enough without them", 19 * gib, 3 * gib, 0, explain.External, "18 GiB and a context of 1 would fit on 19 exactly"},
		{"not even then", 19*gib - 20*mib, 3 * gib, 0, explain.Capacity, "18 GiB and a context of 1 do not fit"},
		{"only a context", 18 * gib, gib / 2, 0, explain.Capacity, "18 GiB do not fit beside any context"},
		{"under a limit", 80 * gib, 32 * gib, 17 * gib, explain.Capacity, "the limit is too low, whatever else is on the device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr, err := scenario.Run(scenario.Config{TotalMemory: tt.total, Unusable: tt.outside, Limit: tt.limit}, func(s *scenario.Scenario) {
				held(s, 3, live/3)
				asks(request, 0)(s)
			})
			if err != nil {
				t.Fatal(err)
			}
			free := tt.total - tt.outside - live
			there := tt.total - tt.outside
			if tt.limit > 0 {
				there = tt.limit
			}
			for name, in := range map[string]explain.Input{"facts": knows(tt.total), "message": said(t, tt.total, free, request, live)} {
				in.Limit = tt.limit
				r := explained(t, tr, in)
				e := r.Evidence
				cause, kinds := explain.Capacity, []string{explain.FixChunk, explain.FixMicroBatch, explain.FixMemory}
				if tt.trigger == explain.External {
					cause, kinds = explain.SharedDevice, []string{explain.FixOthers, explain.FixMemory}
				}
				if r.Cause != cause || r.CauseConfidence != explain.Certain || r.Where != "train.py:40 loss" {
					t.Errorf("%s: %s %s in %s; but %s", name, r.Cause, r.CauseConfidence, r.Where, tt.why)
				}
				if r.Trigger != tt.trigger || r.Confidence != explain.Certain || r.Capped != (tt.limit > 0) {
					t.Errorf("%s: %s %s, capped %v: %s; but %s", name, r.Trigger, r.Confidence, r.Capped, r.Summary, tt.why)
				}
				if *e.Gap != live+request-there || *e.Available != there || *e.DeviceFree != free || *e.Live != live || *e.Reserved != live {
					t.Errorf("%s: gap %s of %s, %s free, %s live", name, text(e.Gap), text(e.Available), text(e.DeviceFree), text(e.Live))
				}
				// The message rounds the size of the device to a hundredth of a GiB.
				if name == "facts" && (*e.External != tt.outside || *e.DeviceTotal != tt.total) || *e.External-tt.outside > gib/100 {
					t.Errorf("%s: %s outside on %s", name, text(e.External), text(e.DeviceTotal))
				}
				if tt.trigger == explain.External && !strings.Contains(r.Summary, units.Size(tt.outside)) {
					t.Errorf("%s does not name %s", r.Summary, units.Size(tt.outside))
				}
				if got := kindsOf(r.Fixes); !slices.Equal(got, kinds) || *r.Fixes[len(got)-1].Bytes != live+request-there {
					t.Errorf("%s: fixes %v, want %v", name, got, kinds)
				}
			}
		})
	}
}

func kindsOf(fixes []explain.Fix) (kinds []string) {
	for i := range fixes {
		kinds = append(kinds, fixes[i].Kind)
	}
	return kinds
}

// What others hold changes while a program runs: it is that at the failure that
// counts.
func TestOthersCome(t *testing.T) {
	tr, err := scenario.Run(scenario.Config{TotalMemory: 80 * gib}, func(s *scenario.Scenario) {
		used(s, 20*gib, 0)
		s.EmptyCache()
		held(s, 1, 6*gib)
		s.Others(70 * gib)
		asks(5*gib, 0)(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []explain.Input{{}, knows(80 * gib)} {
		r := explained(t, tr, in)
		want := explain.Capacity // without the size of the device nothing else can be said
		if in.Facts != nil {
			want = explain.External
		}
		if r.Trigger != want || r.Confidence != explain.Certain || *r.Evidence.Gap != gib || *r.Evidence.Available != 10*gib || r.Capped {
			t.Errorf("%s %s, %s missing of %s: %s", r.Trigger, r.Confidence, text(r.Evidence.Gap), text(r.Evidence.Available), r.Summary)
		}
	}
}

// Others hold nearly all of the device. Live bytes and request fit into what is
// left, in one piece; but without the others a new segment would fit, and they
// hold far more than what PyTorch holds in vain.
func TestExternalButFragmented(t *testing.T) {
	s := &story{
		name: "fragmented beside another process", available: 160 * mib, request: asks(60*mib, 0),
		setup: func(s *scenario.Scenario) { pin(s, 2, 60, 2, 0) },
	}
	w := way{device: true, input: func(_ *story, in *explain.Input) { *in = knows(deviceMemory) }}
	r, _ := s.tell(t, w)
	if r.Trigger != explain.External || r.Confidence != explain.Likely || *r.Evidence.External != deviceMemory-160*mib ||
		len(r.Alternatives) != 1 || r.Alternatives[0].Verdict != explain.Fragmentation {
		t.Errorf("%s %s, %s outside, alternatives %v: %s", r.Trigger, r.Confidence, text(r.Evidence.External), r.Alternatives, r.Summary)
	}
}

// A file that ends before the failure, and the message of the failure: the
// request of the message is tried in the state at the end.
func TestMessageAfterTheFile(t *testing.T) {
	for _, tt := range []struct {
		name    string
		setup   func(*scenario.Scenario)
		request uint64
		limit   uint64
		verdict string
		live    uint64
		fixes   string // kinds, in order
	}{
		{"capacity", func(s *scenario.Scenario) { held(s, 3, 40*mib) }, 50 * mib, 150 * mib, explain.Capacity, 120 * mib, "micro_batch memory"},
		{"fragmentation", func(s *scenario.Scenario) { pin(s, 2, 60, 2, 0) }, 60 * mib, 160 * mib, explain.Fragmentation, 4 * mib, "setting setting memory"},
		{"small", func(s *scenario.Scenario) { held(s, 10, mib) }, 2 * mib, 10 * mib, explain.Capacity, 10 * mib, "memory"},
		{"streams", func(s *scenario.Scenario) {
			split(s, 100, 70, 7)
			s.Free("front")
			used(s, 10*mib, 0)
		}, 60 * mib, 130 * mib, explain.Streams, 30 * mib, "setting setting memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := scenario.Config{Limit: tt.limit}
			tr, err := scenario.Run(c, tt.setup)
			if err != nil {
				t.Fatal(err)
			}
			in := said(t, 80*gib, 79*gib, tt.request, tt.live)
			in.Limit = tt.limit
			r := explained(t, tr, in)
			kinds := kindsOf(r.Fixes)
			for _, f := range r.Fixes {
				if f.Kind != explain.FixSetting {
					continue
				}
				c.Conf = f.Settings
				s := &story{name: tt.name, setup: tt.setup, request: asks(tt.request, 0)}
				if s.failsAnywhere(t, c) {
					t.Errorf("with %s it fails too", f.Settings)
				}
			}
			if r.Trigger != tt.verdict || r.Confidence != explain.Likely || *r.Evidence.Live != tt.live || *r.Evidence.Segment != tt.request || strings.Join(kinds, " ") != tt.fixes {
				t.Errorf("%s %s with %s live, fixes %v: %s", r.Trigger, r.Confidence, text(r.Evidence.Live), kinds, r.Summary)
			}
			if *r.Evidence.Request > tt.request || *r.Evidence.Request != *r.Evidence.Rounded {
				t.Errorf("%s asked for, rounded to %s", text(r.Evidence.Request), text(r.Evidence.Rounded))
			}
			if r.Failure == nil || r.Failure.Event != nil || r.Failure.OOMs != 0 {
				t.Errorf("failure %+v", r.Failure)
			}
		})
	}
}
