package generate

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/trace"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Under a limit the run ends at the request at which the whole run would have
// failed, and its replay is identical.
func TestLimit(t *testing.T) {
	for i, c := range []struct {
		name string
		o    Options
	}{
		{"variety/graphs", Options{Limit: 200 * mib}}, // graphs and a MemPool
		{"variety/graphs", Options{Limit: 400 * mib, Events: 1000}},
		{"snapshots/streams_graphs-default", Options{Limit: 270 * mib}}, // streams, a pool that is deleted
		{"snapshots/streams_graphs-default", Options{Limit: 350 * mib, Events: 3000}},
		{"variety/graphs", Options{Limit: 1}},       // no request is served
		{"variety/expand", Options{Limit: 5 * gib}}, // expandable segments, steps
		{"variety/midrun", Options{Limit: 12 * gib}},
		{"variety/expand", Options{Limit: 15 * gib, Bytes: 5_000_000, DistinctStacks: 100}},
		{"snapshots/moe_train-default", Options{Limit: 4 * gib}},
		{"snapshots/moe_train-default", Options{Limit: 4936 * mib, Events: 50_000}}, // in the second pass
		{"snapshots/gpt2_varlen-tight-default", Options{Limit: 24 * gib, Events: 130_000, StackDepth: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if i > 5 {
				short.Skip(t)
			}
			tr := open(t, c.name)
			f, _ := generated(t, tr, c.o)
			checkFailure(t, tr, f.Traces[0], c.o.Limit)
			limit := c.o.Limit
			c.o.Limit = 0
			whole, _ := generated(t, tr, c.o)
			compareFailure(t, whole.Traces[0], f.Traces[0], limit)
		})
	}
}

// checkFailure looks at a run that ended under a limit, on its own.
func checkFailure(t *testing.T, from, got *trace.Trace, limit uint64) {
	t.Helper()
	for i := range got.Events.Len() {
		if last := i == got.Events.Len()-1; (got.Events.At(i).Action == alloc.ActionOOM) != last {
			t.Fatalf("event %d of %d is %v", i, got.Events.Len(), got.Events.At(i).Action)
		}
	}
	if err := check(got); err != nil {
		t.Error(err)
	}
	if !reflect.DeepEqual(got.Settings, from.Settings) {
		t.Errorf("the settings are %+v, of the source %+v", got.Settings, from.Settings)
	}
	v, err := verify.Run(t.Context(), got, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := v.Result
	if !r.Identical || r.Start != start.Recorded {
		t.Errorf("%d of %d events identical, start %s: %v", r.IdenticalEvents, r.Events, r.Start, r.First)
	}
	if r.Limit.Min > limit || r.Limit.Max < limit {
		t.Errorf("the limit is %d, and the file shows %d to %d", limit, r.Limit.Min, r.Limit.Max)
	}
}

// compareFailure compares a run under a limit with what becomes of the whole run
// under it.
func compareFailure(t *testing.T, whole, got *trace.Trace, limit uint64) {
	t.Helper()
	v, err := verify.Run(t.Context(), whole, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := v.Program()
	o, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	if !o.Fails {
		t.Fatal("the whole run does not fail under the limit")
	}
	oom := got.Events.At(got.Events.Len() - 1)
	if o.First.Rounded != oom.Size || o.First.Stream != oom.Stream || o.First.Time != oom.Time {
		t.Errorf("the whole run fails at %d bytes on stream %d at %d, this one at %+v", o.First.Rounded, o.First.Stream, o.First.Time, oom)
	}
	if want, n := allocs(whole, o.First.Event), allocs(got, got.Events.Len()); n != want {
		t.Errorf("%d requests are served, of the whole run %d", n, want)
	}
	if want := whole.Events.At(o.First.Event); !slices.Equal(frames(got, oom.Stack), frames(whole, want.Stack)) {
		t.Errorf("the stack is %v, of the whole run %v", frames(got, oom.Stack), frames(whole, want.Stack))
	}
	var steps []trace.Annotation
	for _, a := range whole.Annotations {
		if a.Time <= oom.Time {
			steps = append(steps, a)
		}
	}
	if len(got.Annotations) != len(steps) {
		t.Errorf("%d annotations, of the whole run %d until then", len(got.Annotations), len(steps))
	}
}

// allocs counts the requests served before an event.
func allocs(t *trace.Trace, before int) (n int) {
	for i := range before {
		if t.Events.At(i).Action == alloc.ActionAlloc {
			n++
		}
	}
	return n
}

// frames is a stack in words.
func frames(t *trace.Trace, id trace.StackID) (out []string) {
	for _, f := range t.Stacks.Frames(id) {
		frame := t.Stacks.Frame(f)
		out = append(out, t.Strings.Text(frame.File)+":"+t.Strings.Text(frame.Name))
	}
	return out
}

// Of runs that PyTorch recorded twice, without a limit and with one, the first
// under that limit is the second. Other programs free in another order each time.
func TestLimitRecorded(t *testing.T) {
	for _, name := range []string{"ckpt_spike", "llama_ckpt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tight := open(t, "snapshots/"+name+"-tight-default")
			v, err := verify.Run(t.Context(), tight, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, _ := generated(t, open(t, "snapshots/"+name+"-default"), Options{Limit: v.Result.Limit.Max})
			got := f.Traces[0]
			if got.Events.Len() != tight.Events.Len() {
				t.Fatalf("%d events, recorded %d", got.Events.Len(), tight.Events.Len())
			}
			for i := range got.Events.Len() {
				a, b := got.Events.At(i), tight.Events.At(i)
				if a.Action != b.Action || a.Size != b.Size || a.Stream != b.Stream {
					t.Fatalf("event %d is %v %d, recorded %v %d", i, a.Action, a.Size, b.Action, b.Size)
				}
			}
			if a, b := sizes(got), sizes(tight); !slices.Equal(a, b) {
				t.Errorf("the segments are\n%v, recorded\n%v", a, b)
			}
			if a, b := len(got.Annotations), len(tight.Annotations); a != b {
				t.Errorf("%d annotations, recorded %d", a, b)
			}
		})
	}
}

// sizes lists the bytes of segments, reserved and allocated.
func sizes(t *trace.Trace) (out [][2]uint64) {
	for _, s := range t.Segments {
		out = append(out, [2]uint64{s.TotalSize, s.AllocatedSize})
	}
	slices.SortFunc(out, func(a, b [2]uint64) int { return slices.Compare(a[:], b[:]) })
	return out
}

// Pools keep their names, and the default pool does not take over their memory.
func TestPools(t *testing.T) {
	pools := func(t *trace.Trace) (out []alloc.PoolID) {
		for _, s := range t.Segments {
			out = append(out, s.Pool)
		}
		slices.SortFunc(out, func(a, b alloc.PoolID) int { return strings.Compare(a.String(), b.String()) })
		return out
	}
	tr := open(t, "variety/graphs")
	f, _ := generated(t, tr, Options{})
	if got, want := pools(f.Traces[0]), pools(tr); !slices.Equal(got, want) {
		t.Errorf("segments of the pools %v, recorded %v", got, want)
	}
}

// A run that the limit does not end is refused, with what would end it.
func TestLimitSurvived(t *testing.T) {
	const want = "no request fails under a limit of 450.00 MiB: the run reserves at most 406.00 MiB and has at most 264.43 MiB allocated; set a lower limit"
	_, err := Write(t.Context(), &bytes.Buffer{}, open(t, "variety/graphs"), Options{Limit: 450 * mib, Events: 3000})
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Every device ends at its own failure.
func TestLimitDevices(t *testing.T) {
	tr := open(t, "variety/expand")
	f, _ := generated(t, tr, Options{Limit: 5 * gib, Devices: 2})
	if len(f.Traces) != 2 {
		t.Fatalf("%d devices", len(f.Traces))
	}
	for _, got := range f.Traces {
		checkFailure(t, tr, got, 5*gib)
	}
}
