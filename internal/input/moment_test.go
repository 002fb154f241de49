package input

import (
	"errors"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

func TestPick(t *testing.T) {
	full := &trace.Trace{Device: 2, Segments: []trace.Segment{{TotalSize: 1}}}
	f := &snapshot.File{Name: "x", Traces: []*trace.Trace{{Device: 1}, full}}
	var host *NoHostError
	if _, _, err := Pick(f, Device{Number: -1, Host: true}); !errors.As(err, &host) || err.Error() != "x has no host memory" {
		t.Error(err)
	}
	var none *NoMemoryError
	if _, _, err := Pick(f, Device{Number: 1}); !errors.As(err, &none) || err.Error() != "x has no memory on device 1" {
		t.Error(err)
	}
	f.Host = &trace.Trace{Host: true}
	for _, tt := range []struct {
		d    Device
		want *trace.Trace
	}{{Device{Number: 2}, full}, {AnyDevice, full}, {Device{Number: -1, Host: true}, f.Host}} {
		if got, _, err := Pick(f, tt.d); err != nil || got != tt.want {
			t.Errorf("%+v: %v, %v", tt.d, got, err)
		}
	}
	if got := Devices(f); len(got) != 1 || got[0] != full {
		t.Error(got)
	}
	for _, d := range []Device{AnyDevice, {Number: -1, Host: true}} { // no events, another allocator
		if _, _, err := Replayable(f, d); err == nil {
			t.Errorf("%+v can be replayed", d)
		}
	}
}

// Of the messages of one process the last is the one that ended it; of several
// processes the one that ended first counts. What does not say its device may be
// about any.
func TestFailed(t *testing.T) {
	oom := func(line, device, rank int) *message.OOM { return &message.OOM{Line: line, Device: device, Rank: rank} }
	in := &Input{
		Name:     "log",
		Messages: []*message.OOM{oom(1, 0, -1), oom(2, 1, -1), oom(3, -1, -1), oom(4, 0, -1), oom(5, 1, -1)},
		Dumps:    []*stats.Dump{{Device: 0}, {Device: 0}},
	}
	for _, tt := range []struct{ device, at, n int }{{-1, 4, 5}, {0, 3, 3}, {1, 4, 3}, {7, 2, 1}} {
		m, all, err := in.Failed(Device{Number: tt.device})
		if err != nil || m != in.Messages[tt.at] || len(all) != tt.n {
			t.Errorf("device %d: %v, %d, %v", tt.device, m, len(all), err)
		}
	}
	if all, err := in.DumpsOf(AnyDevice); err != nil || len(all) != 2 {
		t.Error(all, err)
	}
	in.Messages = in.Messages[:2]
	var other *OtherDeviceError
	if _, _, err := in.Failed(Device{Number: 7}); !errors.As(err, &other) || err.Error() != "log has no out-of-memory message about device 7" {
		t.Error(err)
	}
	if _, err := in.DumpsOf(Device{Number: 7}); err == nil {
		t.Error("a dump of device 7")
	}
	// Rank 2 survives its first, ends second; line 9 repeats what rank 1 said.
	in.Messages = []*message.OOM{oom(1, 2, 2), oom(3, 1, 1), oom(5, 2, 2), oom(9, 1, -1)}
	if m, all, err := in.Failed(AnyDevice); err != nil || m.Line != 3 || len(all) != 4 {
		t.Error(m, len(all), err)
	}
}

// A message that the end of the log cuts counts only if no whole one precedes it.
func TestFailedCut(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  []bool
		want int
	}{
		{"whole ones", []bool{false, false}, 1},
		{"the last is cut", []bool{false, false, true}, 1},
		{"the only one is cut", []bool{true}, 0},
		{"all are cut", []bool{true, true}, 1},
	} {
		in := &Input{Name: "log"}
		for i, cut := range tt.cut {
			in.Messages = append(in.Messages, &message.OOM{Line: i + 1, Device: 0, Rank: -1, Cut: cut})
		}
		if m, all, err := in.Failed(AnyDevice); err != nil || m != in.Messages[tt.want] || len(all) != len(tt.cut) {
			t.Errorf("%s: %+v, %d messages, %v", tt.name, m, len(all), err)
		}
	}
}

// A message of PyTorch 2.4 counts what is free in private pools as allocated.
func TestSameMoment(t *testing.T) {
	const mib = 1 << 20
	private := alloc.PoolID{Second: 1}
	tr := &trace.Trace{Segments: []trace.Segment{
		{TotalSize: 100 * mib, AllocatedSize: 66 * mib, ActiveSize: 66 * mib},
		{TotalSize: 210 * mib, AllocatedSize: 4 * mib, ActiveSize: 10 * mib, Pool: private}, // 6 MiB wait for a stream
	}}
	printed := func(n uint64) *units.Range {
		return &units.Range{Low: n*mib - mib/200, Mid: n * mib, High: n*mib + mib/200}
	}
	for name, tt := range map[string]struct {
		m           message.OOM
		same, known bool
	}{
		"both numbers":             {message.OOM{AllocatedBytes: printed(270), PrivatePoolBytes: printed(200)}, true, true},
		"without the pools'":       {message.OOM{AllocatedBytes: printed(70)}, true, true},
		"cut before the pools'":    {message.OOM{AllocatedBytes: printed(270)}, true, true},
		"others free in the pools": {message.OOM{AllocatedBytes: printed(270), PrivatePoolBytes: printed(100)}, false, true},
		"other tensors":            {message.OOM{AllocatedBytes: printed(70), PrivatePoolBytes: printed(20)}, false, true},
		"another moment":           {message.OOM{AllocatedBytes: printed(71)}, false, true},
		"no number":                {message.OOM{}, false, false},
	} {
		if same, known := SameMoment(tr, &tt.m); same != tt.same || known != tt.known {
			t.Errorf("%s: %v, %v", name, same, known)
		}
	}
}
