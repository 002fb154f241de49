package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// made returns a program of sizes in MiB; a negative one frees the tensor that
// has that number, from 1 on.
func made(t *testing.T, script ...int) *Program {
	t.Helper()
	tensors := 0
	names := make([]int, len(script))
	for i, n := range script {
		names[i] = -n - 1
		if n > 0 {
			names[i] = tensors
			tensors++
		}
	}
	p, err := NewProgram(settings.Default(), len(script), func(i int) Call {
		if script[i] < 0 {
			return Call{Kind: CallFree, Tensor: names[i]}
		}
		return Call{Kind: CallAlloc, Tensor: names[i], Size: uint64(script[i]) << 20}
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const mib = 1 << 20

func TestNewProgram(t *testing.T) {
	// 40 and 30 live, 30 goes, 20 takes its place and leaves 10.
	p := made(t, 40, 30, -2, 20, -1, -3)
	if p.Len() != 6 || p.Tensors() != 3 {
		t.Fatalf("%d calls, %d tensors", p.Len(), p.Tensors())
	}
	if c := p.Call(3); c.Kind != CallAlloc || c.Tensor != 2 || c.Size != 20*mib || c.Event != 3 {
		t.Errorf("%+v", c)
	}
	o, err := p.Run(t.Context(), Conditions{Settings: settings.Default(), BlockSizes: true, Points: 3})
	if err != nil {
		t.Fatal(err)
	}
	if o.Fails || o.Allocated.Bytes != 70*mib || o.Allocated.Event != 1 || o.Reserved.Bytes != 70*mib {
		t.Errorf("%+v", o)
	}
	if len(o.BlockSizes) != 3 || o.BlockSizes[0] != 40*mib || o.BlockSizes[2] != 20*mib {
		t.Errorf("%v", o.BlockSizes)
	}
	if len(o.Curve) != 3 || o.Curve[1].Allocated != 70*mib || o.Curve[2].AllocatedNow != 0 {
		t.Errorf("%+v", o.Curve)
	}
}

// Peaks from a call on begin with what is there before it.
func TestFrom(t *testing.T) {
	p := made(t, 40, 30, -2, 20, -1, -3)
	for _, tt := range []struct {
		from      int
		allocated uint64
		at        int
	}{{0, 70, 1}, {2, 70, 1}, {3, 60, 3}, {4, 60, 3}, {5, 20, 4}, {6, 0, 5}, {99, 0, 5}} {
		o, err := p.Run(t.Context(), Conditions{Settings: settings.Default(), From: tt.from, Points: 2})
		if err != nil {
			t.Fatal(err)
		}
		if o.Allocated.Bytes != tt.allocated*mib || o.Reserved.Bytes != 70*mib || tt.allocated > 0 && o.Allocated.Event != tt.at {
			t.Errorf("from %d: allocated %+v, reserved %+v", tt.from, o.Allocated, o.Reserved)
		}
	}
	// A failure before the peaks count is one all the same.
	o, err := p.Run(t.Context(), Conditions{Settings: settings.Default(), From: 4, Limit: 50 * mib})
	if err != nil || !o.Fails || o.First.Event != 1 {
		t.Errorf("%+v %v", o, err)
	}
}

func TestNewProgramRefuses(t *testing.T) {
	for want, calls := range map[string][]Call{
		"is not there":            {{Kind: CallAlloc, Size: 1}, {Kind: CallFree, Tensor: 1}},
		"names tensor -1":         {{Kind: CallAlloc, Tensor: -1}},
		"cannot have":             {{Kind: CallTry}},
		"call 1 names tensor -12": {{Kind: CallAlloc, Size: 1}, {Kind: CallFree, Tensor: -12}},
	} {
		if _, err := NewProgram(settings.Default(), len(calls), func(i int) Call { return calls[i] }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", calls, err)
		}
	}
}

// The smallest limit passes, 2 MiB less does not; for recorded runs too.
func TestSmallestLimit(t *testing.T) {
	expandable, split := settings.Default(), settings.Default()
	expandable.ExpandableSegments = true
	split.MaxSplitSize = 24 << 20
	for _, s := range []settings.Settings{settings.Default(), expandable, split} {
		for _, script := range [][]int{
			{40, 30, -2, 20, -1, -3},
			{10, 12, 14, -2, 13, -1, -3, 30, -4},
			{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, -1, -3, -5, -7, -9, 24, 24},
			{33, -1, 34, -2, 35, -3, 36, 1, -4, 37},
		} {
			p := made(t, script...)
			free, err := p.Run(t.Context(), Conditions{Settings: s})
			if err != nil {
				t.Fatal(err)
			}
			for _, high := range []uint64{0, free.Reserved.Bytes} {
				if s.ExpandableSegments && high > 0 {
					continue // granules are compared with a limit otherwise
				}
				got, err := p.SmallestLimit(t.Context(), s, free.Requested.Bytes, high)
				if err != nil {
					t.Fatal(err)
				}
				for _, tt := range []struct {
					limit uint64
					fails bool
				}{{got, false}, {got - 2*mib, true}} {
					o, err := p.Run(t.Context(), Conditions{Settings: s, Limit: tt.limit})
					if err != nil || o.Fails != tt.fails && tt.limit >= free.Requested.Bytes {
						t.Errorf("%v: the smallest limit is %d MiB, but under %d MiB fails is %v (%v)", script, got/mib, tt.limit/mib, o.Fails, err)
					}
				}
			}
		}
	}
}

// An observed run is told every event with its call, the failing one too, and
// ends as it does unobserved.
func TestObserve(t *testing.T) {
	p := made(t, 30, 40, -1, 30, 50, -2)
	for _, tt := range []struct {
		limit uint64
		want  string
		calls int
		live  uint64
	}{
		{0, "0 segment_alloc, 0 alloc, 1 segment_alloc, 1 alloc, 2 free_requested, 2 free_completed, 3 alloc, " +
			"4 segment_alloc, 4 alloc, 5 free_requested, 5 free_completed", 6, 80 * mib},
		{100 * mib, "0 segment_alloc, 0 alloc, 1 segment_alloc, 1 alloc, 2 free_requested, 2 free_completed, 3 alloc, 4 oom", 4, 70 * mib},
	} {
		c := Conditions{Settings: settings.Default(), Limit: tt.limit, Points: 2}
		plain, err := p.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		c.Observe = func(call int, e alloc.Event) { got = append(got, fmt.Sprint(call, " ", e.Action)) }
		o, err := p.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("limit %d: %s\n\twant %s", tt.limit, s, tt.want)
		}
		var live uint64
		for i := range o.Segments {
			live += o.Segments[i].AllocatedSize
		}
		if o.Calls != tt.calls || o.Calls != plain.Calls || live != tt.live || o.Stats != plain.Stats || !slices.Equal(o.Curve, plain.Curve) {
			t.Errorf("limit %d: %d calls, %d live; unobserved %d calls", tt.limit, o.Calls, live, plain.Calls)
		}
		if plain.Segments != nil {
			t.Errorf("limit %d: an unobserved run has segments", tt.limit)
		}
	}
}

// A tensor beside a program is a first call, and all others come one later.
func TestBeside(t *testing.T) {
	p := made(t, 10, 12, -1, 14, -2, 30)
	got := p.Beside(5 * mib)
	want, err := NewProgram(p.Settings, p.Len()+1, func(i int) Call {
		if i == 0 {
			return Call{Kind: CallAlloc, Tensor: 4, Size: 5 * mib}
		}
		return p.Call(i - 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != want.Len() || got.tensors != want.tensors {
		t.Fatalf("%d calls on %d tensors, want %d on %d", got.Len(), got.tensors, want.Len(), want.tensors)
	}
	for i := range got.Len() {
		if a, b := got.Call(i), want.Call(i); a != b {
			t.Errorf("call %d is %+v, want %+v", i, a, b)
		}
	}
}

// Others take addresses before the calls that they are said to, also when a
// tensor is put beside the program's, and the peaks begin at any call.
func TestStartedProgram(t *testing.T) {
	script := []int{62, 32, 30, -2, 30, -1, -3, 30, 40}
	program := func(others ...ExternalRange) *Program {
		p := made(t, script...)
		p.Started(others)
		return p
	}
	taking := func(call int, mb uint64) ExternalRange {
		return ExternalRange{call, sim.ExternalRange{Bytes: mb * mib}}
	}
	addresses := func(p *Program, call int) []uint64 {
		m, err := p.hold(t.Context(), Conditions{Settings: settings.Default()}, call)
		if err != nil {
			t.Fatal(err)
		}
		var out []uint64
		for _, s := range m.run.allocator.Segments() {
			out = append(out, s.Address)
		}
		return out
	}
	plain := addresses(program(), 3)
	for _, tt := range []struct {
		name   string
		others []ExternalRange
		call   int
		same   bool
	}{
		{"none", nil, 3, true},
		{"before the first call", []ExternalRange{taking(0, 64)}, 3, false},
		{"before a later one", []ExternalRange{taking(2, 64)}, 3, false},
		{"before one that is not made", []ExternalRange{taking(3, 64)}, 3, true},
		{"into a gap that nobody wanted", []ExternalRange{taking(1, 2)}, 3, true},
	} {
		if got := addresses(program(tt.others...), tt.call); slices.Equal(got, plain) != tt.same {
			t.Errorf("%s: segments at %x, without others at %x", tt.name, got, plain)
		}
		one := program(tt.others...).Beside(mib / 2)
		base := addresses(program().Beside(mib/2), tt.call+1)
		if got := addresses(one, tt.call+1); slices.Equal(got, base) != tt.same {
			t.Errorf("%s: segments at %x with a tensor beside, without others at %x", tt.name, got, base)
		}
	}
	for from := range len(script) {
		a, err := program(taking(1, 2), taking(4, 10), taking(4, 64)).Run(t.Context(), Conditions{Settings: settings.Default(), From: from, Points: 3})
		if err != nil {
			t.Fatal(err)
		}
		if a.Calls != len(script) || a.Fails {
			t.Errorf("from %d: %d calls, %v", from, a.Calls, a.Fails)
		}
	}
	// What cannot be had is an error, not a failed request.
	if _, err := program(taking(2, 1<<30)).Run(t.Context(), Conditions{Settings: settings.Default()}); !errors.Is(err, sim.ErrMisuse) {
		t.Error(err)
	}
}
