package text

import (
	"github.com/ashlar-mem/ashlar/internal/gpu"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// gpuShared writes what threads and streams cost each other.
func (p *page) gpuShared(b *gpu.Bench) {
	names := map[string]string{
		gpu.CaseDriver: "cuMemAlloc", gpu.CasePool: "cuMemAllocAsync", gpu.CaseReuse: "reuse across streams", gpu.CaseNoReuse: "no reuse",
	}
	var lines [][]string
	for _, r := range b.Find(gpu.GroupThreads, "", gpu.PartAll) {
		lines = append(lines, []string{names[r.Case], countText(*r.Goroutines), units.Duration(r.Median), spread(r), often(r)})
	}
	p.table("The driver from several threads", ": pairs of 2 MiB, time per pair over all", 1, []string{"call", "threads", "pair", "middle half", "rounds"}, lines)
	lines = nil
	for _, r := range b.Find(gpu.GroupStreams, "", gpu.PartAll) {
		held := "-"
		if r.PoolReserved != nil {
			held = units.Size(*r.PoolReserved)
		}
		lines = append(lines, []string{names[r.Case], countText(*r.Streams), units.Duration(r.Median), held, spread(r), often(r)})
	}
	p.table("The driver's pool with several streams", ": 2 MiB on one after the other", 1, []string{"pool", "streams", "pair", "reserved", "middle half", "rounds"}, lines)
}

// gpuAccess writes how fast kernels read managed memory, and what a fault takes.
func (p *page) gpuAccess(b *gpu.Bench) {
	names := map[string]string{
		gpu.PartDevice: "device memory", gpu.PartResident: "managed, on the device", gpu.PartFault: "managed, faults",
		gpu.PartPrefetch: "managed, prefetch", gpu.PartReadMostly: "managed, read mostly", gpu.PartMapped: "managed, mapped from the host",
	}
	var lines [][]string
	for _, r := range b.Find(gpu.GroupAccess, "", "") {
		lines = append(lines, []string{r.Case, names[r.Part], units.Duration(r.Median), spread(r), often(r)})
	}
	size := ""
	if rows := b.Find(gpu.GroupAccess, "", ""); len(rows) > 0 {
		size = units.Size(*rows[0].Size)
	}
	p.table("A kernel that reads", ": "+size+"; all of it, a word of every 4 KiB, or as many random words", 2, []string{"order", "memory", "time", "middle half", "rounds"}, lines)
	lines = nil
	faults := map[string]string{gpu.PartFault: "device reads a word on the host", gpu.PartResident: "the same without a fault", gpu.PartToHost: "host writes a byte on the device"}
	for _, r := range b.Find(gpu.GroupFault, "", "") {
		lines = append(lines, []string{faults[r.Part], units.Duration(r.Median), spread(r), often(r)})
	}
	p.table("A single fault", " of managed memory, launch and wait included", 1, []string{"access", "time", "middle half", "rounds"}, lines)
}

// gpuTier writes what memory of the host costs that takes the place of the device's.
func (p *page) gpuTier(b *gpu.Bench) {
	names := map[string]string{
		gpu.CaseHostPages + gpu.PartCreate: "host's pages made", gpu.CaseHostPages + gpu.PartRelease: "given back",
		gpu.CasePark + gpu.PartToHost: "parked", gpu.CasePark + gpu.PartRead: "read by a kernel", gpu.CasePark + gpu.PartWrite: "written by a kernel",
		gpu.CasePark + gpu.PartToDevice: "restored",
	}
	var lines [][]string
	for _, r := range b.Find(gpu.GroupTier, "", "") {
		if r.Part != gpu.PartAll {
			lines = append(lines, []string{units.Size(*r.Size), names[r.Case+r.Part], units.Duration(r.Median), gpu.Rate(r), spread(r), often(r)})
		}
	}
	p.table("The host's memory in place of the device's", ", the addresses stay: docs/tiers.md", 2, []string{"size", "what", "time", "rate", "middle half", "rounds"}, lines)
}
