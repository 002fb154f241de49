package text

import (
	"fmt"
	"strings"
)

// metric is one group of rows of the memory summary.
type metric struct {
	key, name string
	format    func(value, reference int64) string
}

// The rows in PyTorch's order (spec 9.4).
var (
	poolMetrics = []metric{
		{"allocated_bytes", "Allocated memory", summarySize},
		{"active_bytes", "Active memory", summarySize},
		{"requested_bytes", "Requested memory", summarySize},
		{"reserved_bytes", "GPU reserved memory", summarySize},
		{"inactive_split_bytes", "Non-releasable memory", summarySize},
		{"allocation", "Allocations", summaryCount},
		{"active", "Active allocs", summaryCount},
		{"segment", "GPU reserved segments", summaryCount},
		{"inactive_split", "Non-releasable allocs", summaryCount},
	}
	plainMetrics = []metric{
		{"oversize_allocations", "Oversize allocations", summaryCount},
		{"oversize_segments", "Oversize GPU segments", summaryCount},
	}
)

const summaryWidth = 75

// MemorySummary returns the text of PyTorch's torch.cuda.memory_summary() for
// the given memory_stats(). A key that is missing counts as 0. With abbreviated
// the rows of the single pools are left out.
func MemorySummary(stats map[string]int64, device int, abbreviated bool) string {
	var b strings.Builder
	line := func(s string) { b.WriteString("|" + s + "|\n") }
	thick, thin := strings.Repeat("=", summaryWidth), strings.Repeat("-", summaryWidth)

	line(thick)
	line(fmt.Sprintf(" %16s PyTorch CUDA memory summary, device ID %-17d ", "", device))
	line(thin)
	line(fmt.Sprintf("  %9s CUDA OOMs: %-12d | %6s cudaMalloc retries: %-8d  ", "", stats["num_ooms"], "", stats["num_alloc_retries"]))
	line(thick)
	line("        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ")
	for _, m := range poolMetrics {
		line(thin)
		all := m.key + ".all."
		line(summaryRow(stats, m, m.name, all, all))
		if !abbreviated {
			line(summaryRow(stats, m, "      from large pool", m.key+".large_pool.", all))
			line(summaryRow(stats, m, "      from small pool", m.key+".small_pool.", all))
		}
	}
	for _, m := range plainMetrics {
		line(thin)
		line(summaryRow(stats, m, m.name, m.key+".", m.key+"."))
	}
	line(thick)
	return b.String()
}

// summaryRow writes the four columns of the statistic named by prefix, in the
// units that suit the statistic named by reference.
func summaryRow(stats map[string]int64, m metric, name, prefix, reference string) string {
	var b strings.Builder
	fmt.Fprintf(&b, " %-21s ", name)
	for _, field := range []string{"current", "peak", "allocated", "freed"} {
		fmt.Fprintf(&b, "| %s ", m.format(stats[prefix+field], stats[reference+field]))
	}
	return b.String()
}

func summarySize(value, reference int64) string {
	value, unit := summaryScale(value, reference, 1024, 768*1024, "B  ", "KiB", "MiB", "GiB", "TiB", "PiB")
	return fmt.Sprintf("%6d %s", value, unit)
}

func summaryCount(value, reference int64) string {
	value, unit := summaryScale(value, reference, 1000, 750*1000, " ", "K", "M")
	return fmt.Sprintf("%7d %s ", value, unit)
}

// summaryScale goes up the units until the reference is below the threshold.
// The reference is divided as a float, the value rounds down at each step, as
// in Python.
func summaryScale(value, reference, step int64, threshold float64, units ...string) (int64, string) {
	ref := float64(reference)
	unit := 0
	for unit+1 < len(units) && ref >= threshold {
		unit++
		ref /= float64(step)
		value = floorDiv(value, step)
	}
	return value, units[unit]
}

// floorDiv rounds toward minus infinity; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
