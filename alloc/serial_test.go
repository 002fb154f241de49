package alloc

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/invariants"
	"github.com/ashlar-mem/ashlar/settings"
)

// The unlocked entry does what the locked one does.
func TestSerial(t *testing.T) {
	for seed, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:64,garbage_collection_threshold:0.6"} {
		s, err := settings.Parse(conf)
		if err != nil {
			t.Fatal(err)
		}
		make1 := func() (*Allocator, *sim.Device) {
			d := sim.New(sim.Config{TotalMemory: 2 << 30, Events: sim.Manual})
			a := New(d, WithSettings(s))
			a.SetLimit(1 << 30)
			return a, d
		}
		locked, d1 := make1()
		other, d2 := make1()
		serial := other.Serial()
		type pair struct {
			addr uint64
			h    Handle
		}
		var live []pair
		rng := rand.New(rand.NewPCG(uint64(seed), 0))
		for range 20_000 {
			switch n := rng.IntN(10); {
			case n < 5:
				size, stream := rng.Uint64N(1<<rng.IntN(27)), rng.Uint64N(2)
				addr, err1 := locked.Malloc(size, stream)
				h, err2 := serial.Malloc(size, stream)
				if (err1 == nil) != (err2 == nil) || addr != 0 && serial.Address(h) != addr {
					t.Fatalf("%d bytes at %#x, %v; unlocked at %#x, %v", size, addr, err1, serial.Address(h), err2)
				}
				if addr == 0 {
					continue
				}
				if serial.Find(addr) != h || serial.Size(h) < size {
					t.Fatalf("handle %d is not the block at %#x", h, addr)
				}
				live = append(live, pair{addr, h})
			case len(live) > 0:
				i := rng.IntN(len(live))
				p := live[i]
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				var err error
				if n == 5 {
					err = errors.Join(locked.RecordStream(p.addr, 9), locked.Free(p.addr), serial.FreeAfter(p.h, 9))
				} else {
					err = errors.Join(locked.Free(p.addr), serial.Free(p.h))
				}
				if err != nil {
					t.Fatal(err)
				}
				if n == 6 {
					d1.Complete(9)
					d2.Complete(9)
				}
			}
			if got, want := serial.Totals(), other.Stats(); got.Reserved != uint64(want.ReservedBytes.All.Current) ||
				got.Allocated != uint64(want.AllocatedBytes.All.Current) || got.Active != uint64(want.ActiveBytes.All.Current) ||
				got.Requested != uint64(want.RequestedBytes.All.Current) {
				t.Fatalf("%+v, but the statistics say %+v", got, want)
			}
		}
		if a, b := locked.Stats(), other.Stats(); a != b {
			t.Errorf("%q: %+v\nunlocked %+v", conf, a, b)
		}
		var largest uint64
		for _, seg := range other.Segments() {
			for _, b := range seg.Blocks {
				if b.State == Inactive {
					largest = max(largest, b.Size)
				}
			}
		}
		if got := serial.LargestFree(); got != largest {
			t.Errorf("%q: the largest free block has %d bytes, want %d", conf, got, largest)
		}
		if err := other.CheckInvariants(); err != nil {
			t.Error(err)
		}
	}
}

// A reclaimer may free through the lock that the unlocked entry does not hold.
func TestSerialReclaimer(t *testing.T) {
	var a *Allocator
	var kept uint64
	a = New(sim.New(sim.Config{}), WithReclaimer(func() bool {
		freed := kept != 0 && a.Free(kept) == nil
		kept = 0
		return freed
	}))
	first, err := a.Malloc(30<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	kept = first
	if h, err := a.Serial().Malloc(30<<20, 0); err != nil || a.Serial().Address(h) != first {
		t.Errorf("handle %d, %v: the block that the reclaimer freed was not used", h, err)
	}
}

func TestSerialMisuse(t *testing.T) {
	s := New(sim.New(sim.Config{})).Serial()
	h, err := s.Malloc(1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	var invalid *InvalidPointerError
	if err := s.Free(h); err != nil {
		t.Error(err)
	}
	if err := s.Free(h); !errors.As(err, &invalid) {
		t.Errorf("freed twice: %v", err)
	}
	if err := s.FreeAfter(h, 7); !errors.As(err, &invalid) {
		t.Errorf("freed twice, with another stream: %v", err)
	}
	if h, err := s.Malloc(0, 0); h != 0 || err != nil || s.Free(h) != nil || s.FreeAfter(h, 1) != nil {
		t.Errorf("0 bytes: %d, %v", h, err)
	}
	if _, err := s.Malloc(1<<60, 0); err == nil {
		t.Error("2^60 bytes were served")
	}
	if invariants.Enabled {
		return // checking them allocates
	}
	if n := testing.AllocsPerRun(100, func() {
		h, _ := s.Malloc(4096, 0)
		_ = s.Free(h)
	}); n != 0 {
		t.Errorf("%v heap allocations in a pair", n)
	}
}
