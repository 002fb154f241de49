package alloc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

func TestDiagnosis(t *testing.T) {
	const gib = 1 << 30
	base := alloc.OutOfMemoryError{Requested: 2 * gib, Rounded: 2 * gib, Segment: 2 * gib, DeviceFree: gib, DeviceTotal: 12 * gib, Reserved: 9 * gib, Allocated: 6 * gib}
	full, limited, tight := base, base, base
	full.Allocated = 9 * gib
	limited.Limited, limited.Limit, limited.DeviceFree = true, 7*gib, 3*gib
	tight.Allocated, tight.Rounded, tight.Segment = 9*gib, gib, gib+2<<20
	const fits = "what is in use (6.00 GiB) and the request (2.00 GiB) would fit into the 10.00 GiB that can be had on the device"
	for _, tt := range []struct {
		name string
		e    alloc.OutOfMemoryError
		s    alloc.Shortage
		want string
	}{
		{
			"capacity", full,
			alloc.Shortage{},
			"what is in use (9.00 GiB) and the request (2.00 GiB) need 1.00 GiB more than the 10.00 GiB that can be had on the device, however it is laid out.",
		},
		{
			"limit", limited,
			alloc.Shortage{},
			"what is in use (6.00 GiB) and the request (2.00 GiB) need 1.00 GiB more than the 7.00 GiB that are allowed, however it is laid out." +
				" The device itself could give 12.00 GiB: the limit is what stops it (per_process_memory_fraction).",
		},
		{
			"fragmentation", base,
			alloc.Shortage{Usable: 2 * gib, Largest: gib, Streams: gib, ExpandableServes: true},
			fits + "; 3.00 GiB is free but cannot serve it: 2.00 GiB in pieces of at most 1.00 GiB, 1.00 GiB belongs to other streams." +
				" With expandable_segments:True free pieces need not lie side by side.",
		},
		{
			"fragmentation, and granules would not help", base,
			alloc.Shortage{Usable: 3 * gib, Largest: gib},
			fits + "; 3.00 GiB is free but cannot serve it: 3.00 GiB in pieces of at most 1.00 GiB.",
		},
		{
			"waiting in a capture", base,
			alloc.Shortage{Kinds: gib, Private: gib, Waiting: gib, Routed: true, Expandable: true},
			fits + "; 2.00 GiB is free but cannot serve it: 1.00 GiB lies in the pool for requests of another size, 1.00 GiB lies in pools that the request may not use." +
				" 1.00 GiB more was freed but is still in use on other streams." +
				" Nothing could be given back to the device, because a graph is being captured or a pool is in use.",
		},
		{"waiting alone", base, alloc.Shortage{Waiting: gib, Expandable: true}, fits + ". 1.00 GiB was freed but is still in use on other streams."},
		{
			"granule", tight,
			alloc.Shortage{Expandable: true},
			"what is in use (9.00 GiB) and the request (1.00 GiB) would fit into the 10.00 GiB that can be had on the device," +
				" but not with segments of this size: it takes one of 1.00 GiB.",
		},
		{"too large", alloc.OutOfMemoryError{Requested: 1 << 60, TooLarge: true}, alloc.Shortage{}, "no device has the 1073741824.00 GiB that were asked for."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.e.Diagnosis(tt.s); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Diagnose takes the state from the allocator: the free memory of another
// stream is found there.
func TestDiagnose(t *testing.T) {
	a := alloc.New(sim.New(sim.Config{TotalMemory: 100 * mib}))
	whole := must(a.Malloc(60*mib, 7))
	kept := must(a.Malloc(30*mib, 0))
	check(a.Free(whole))
	must(a.Malloc(20*mib, 7)) // pins the segment of stream 7
	_, err := a.Malloc(30*mib, 0)
	var oom *alloc.OutOfMemoryError
	if !errors.As(err, &oom) {
		t.Fatal(err)
	}
	if text := a.Diagnose(oom); !strings.Contains(text, "40.00 MiB is free but cannot serve it: 40.00 MiB belongs to other streams.") {
		t.Error(text)
	}
	check(a.Free(kept))
}

// Expandable segments are hinted at where the same calls pass with them, and not
// where granules take the room.
func TestDiagnoseHintsAtExpandableSegments(t *testing.T) {
	type call struct{ size, stream uint64 }
	var (
		before, kept []call // streams with 2 MiB in a segment of 20 MiB each
		wide         = []call{{100 * mib, 0}, {100 * mib, 0}, {100 * mib, 0}}
		sixty        = []call{{60 * mib, 0}, {60 * mib, 0}, {60 * mib, 0}} // pin the segments of wide
	)
	for stream := range uint64(5) {
		before, kept = append(before, call{20 * mib, stream}), append(kept, call{2 * mib, stream})
	}
	for _, tt := range []struct {
		name         string
		total, limit uint64
		freed, kept  []call // the first are freed before the others are made
		last         call
		serves       bool
	}{
		{"pieces", 300 * mib, 0, wide, sixty, call{100 * mib, 0}, true},
		{"pieces under a limit", 1 << 30, 300 * mib, wide, sixty, call{100 * mib, 0}, true},
		{"pieces of another stream", 300 * mib, 0, wide, sixty, call{100 * mib, 1}, true},
		{"a granule for each stream", 110 * mib, 0, before, kept, call{30 * mib, 0}, false},
		{"a granule for each stream, under a limit", 1 << 30, 110 * mib, before, kept, call{30 * mib, 0}, false},
		{"a granule for one more stream", 100 * mib, 0, before, kept, call{18 * mib, 5}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := func(conf string) (*alloc.Allocator, error) {
				set, err := settings.Parse(conf)
				check(err)
				a := alloc.New(sim.New(sim.Config{TotalMemory: tt.total}), alloc.WithSettings(set))
				if tt.limit > 0 {
					check(a.SetMemoryFraction(float64(tt.limit) / float64(tt.total)))
				}
				var freed []uint64
				for _, c := range tt.freed {
					freed = append(freed, must(a.Malloc(c.size, c.stream)))
				}
				for _, p := range freed {
					check(a.Free(p))
				}
				for _, c := range tt.kept {
					must(a.Malloc(c.size, c.stream))
				}
				_, err = a.Malloc(tt.last.size, tt.last.stream)
				return a, err
			}
			a, err := run("")
			var oom *alloc.OutOfMemoryError
			if !errors.As(err, &oom) {
				t.Fatalf("it does not fail: %v", err)
			}
			if hinted := strings.Contains(a.Diagnose(oom), "expandable_segments:True"); hinted != tt.serves {
				t.Errorf("hinted %t: %s", hinted, a.Diagnose(oom))
			}
			if _, err := run("expandable_segments:True"); (err == nil) != tt.serves {
				t.Errorf("with them: %v", err)
			}
		})
	}
}
