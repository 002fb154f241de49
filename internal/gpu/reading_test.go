package gpu

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// timed is a row whose rounds lie close to the median.
func timed(group, kind, part string, median float64) Row {
	return Row{Group: group, Case: kind, Part: part, Median: median, Low: 0.99 * median, High: 1.01 * median}
}

func (r Row) sized(size uint64) Row        { r.Size = &size; return r }
func (r Row) under(settings string) Row    { r.Settings = &settings; return r }
func (r Row) handles(n int) Row            { r.Handles = &n; return r }
func (r Row) from(goroutines int) Row      { r.Goroutines = &goroutines; return r }
func (r Row) within(low, high float64) Row { r.Low, r.High = low, high; return r }

const us = 1e3

func readable() *Bench {
	return &Bench{Rows: []Row{
		timed(GroupEngine, CaseHot, PartAll, 93.3).under(SettingsPlain),
		timed(GroupEngine, CaseHot, PartAll, 70).under(SettingsExpandable),
		timed(GroupDriver, CasePair, PartAll, 62*us).sized(2 * mib),
		timed(GroupDriver, CasePair, PartAll, 94*us).sized(20 * mib),
		timed(GroupAsync, CasePair, PartAll, 800).sized(20 * mib),
		timed(GroupAsync, CaseSyncPair, PartAll, 90*us).sized(20 * mib),
		timed(GroupGrowth, CaseGrow, PartMalloc, 41*us).sized(20 * mib).under(SettingsPlain),
		timed(GroupGrowth, CaseGrow, PartMalloc, 80*us).sized(20 * mib).under(SettingsExpandable),
		timed(GroupRange, CaseMapping, PartSetAccess, 396*us).sized(2 * mib).handles(10),
		timed(GroupRange, CaseMapping, PartSetAccess, 18433*us).sized(2 * mib).handles(500),
		timed(GroupHandle, CaseMapping, PartSetAccess, 52*us).sized(2 * mib).handles(1),
		timed(GroupHandle, CaseMapping, PartSetAccess, 102*us).sized(gib).handles(1),
		timed(GroupContention, CaseHot, PartAll, 95).from(1),
		timed(GroupContention, CaseHot, PartAll, 117).from(8),
		timed(GroupCopy, CasePinned, PartToDevice, 10e6).sized(512 * mib),
		timed(GroupCopy, CasePageable, PartToDevice, 42e6).sized(512 * mib),
		timed(GroupCopy, CasePinned, PartToHost, 9765.625).sized(4*kib).within(9e3, 12e3),
		timed(GroupCopy, CasePinned, PartToHost, 10e6).sized(512 * mib),
		timed(GroupCopy, CasePageable, PartToHost, 10e3).sized(4*kib).within(9e3, 13e3), // the large one was left out
		timed(GroupManaged, CaseExplicit, PartAll, 40e6).sized(gib),
		timed(GroupManaged, CaseOnDemand, PartAll, 420e6).sized(gib),
		timed(GroupManaged, CasePrefetch, PartAll, 30e6).sized(gib),
	}}
}

func TestReading(t *testing.T) {
	want := []string{
		"The driver takes 94.0 us for cuMemAlloc and cuMemFree of 20.00 MiB, as long as 1,008 pairs of the engine (93.3 ns each, from its cache); its own pool takes 800 ns, as long as 8.57 pairs.",
		"A malloc of 20.00 MiB for which the engine needs new memory takes 41.0 us with a segment of its own and 80.0 us with an expandable segment: as long as 439 pairs and 857 pairs from the cache.",
		"Setting access to 500 handles of 2.00 MiB in one call takes 18.4 ms, 36.9 us a handle; to one handle of 1.00 GiB 102 us.",
		"From one goroutine the engine serves 10,500,000 pairs a second in all, from 8 goroutines 8,550,000.",
		"Copies of 512.00 MiB to the device run at 50.00 GiB/s with page-locked memory and at 11.90 GiB/s with ordinary memory (4.20 times as long). " +
			"Copies of 4.00 KiB to the host run at 400.00 MiB/s with page-locked memory and at 390.62 MiB/s with ordinary memory (no difference beyond the spread).",
		"1.00 GiB to the device, through a kernel and back take 40.0 ms by copies of page-locked memory; managed memory takes 420 ms on demand (10.5 times as long) and 30.0 ms with prefetching (1.33 times as fast).",
	}
	if diff := cmp.Diff(want, readable().read()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := new(Bench).read(); got == nil || len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

// Without any one of the rows what is said holds without it, or is not said.
func TestReadingWithoutARow(t *testing.T) {
	for i, left := range readable().Rows {
		b := readable()
		b.Rows = slices.Delete(b.Rows, i, i+1)
		for _, text := range b.read() {
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, " 0 B") {
				t.Errorf("without %s %s %s: %s", left.Group, left.Case, left.Part, text)
			}
		}
	}
	b := readable()
	b.Rows = slices.DeleteFunc(b.Rows, func(r Row) bool { return r.Group == GroupAsync || r.Group == GroupHandle })
	text := strings.Join(b.read(), " ")
	if strings.Contains(text, "pool") || strings.Contains(text, "one handle") || !strings.Contains(text, "36.9 us a handle.") {
		t.Error(text)
	}
}
