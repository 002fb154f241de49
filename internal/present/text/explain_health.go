package text

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// healthLines is how many lines the health of a run takes unless all is shown,
// headings included.
const healthLines = 8

// health is that of a run in which nothing failed.
func (e *explanation) health() {
	h := e.report.Health
	if h == nil {
		return
	}
	rows, smaller := Health(h), Smaller(h)
	most := len(smaller)
	if !e.full() {
		lines := healthLines - 1 // the heading
		if most > 0 {
			lines -= 2 // at least one, below a heading
		}
		rows = rows[:e.more(len(rows), lines, "number", "numbers")]
		most = e.more(most, max(1, min(e.shown.fixes, lines+1-len(rows))), "smaller setting", "smaller settings")
	}
	e.heading("Health", "")
	for _, r := range rows {
		e.wrapped(fmt.Sprintf("  %13s  ", r.Value), r.Text)
	}
	if most == 0 {
		return
	}
	e.title("Could be smaller", ": peak reserved of the same calls under other settings")
	for _, r := range smaller[:most] {
		e.line("  %13s  %s", r.Value, r.Text)
	}
}

// Health returns the numbers of a run in which nothing failed.
func Health(h *explain.Health) []Row {
	atLeast := ""
	if h.AtLeast {
		atLeast = ", at least"
	}
	peak := fmt.Sprintf("peak reserved%s, for %s peak allocated%s", atLeast, units.Size(h.PeakAllocated), atLeast)
	if h.Fragmentation != nil {
		peak += ": fragmentation " + percentText(h.Fragmentation)
	}
	rows := sizeRow(nil, "", &h.PeakReserved, peak)
	rows = sizeRow(rows, "", h.Headroom, "left under the limit")
	add := func(value, text string) { rows = append(rows, Row{Value: value, Text: text}) }
	if h.Retries > 0 {
		add(units.Count(h.Retries), retriesText(h))
	}
	if h.Growth != nil && *h.Growth != 0 {
		add(units.Delta(*h.Growth), "change of allocated memory from the end of step 2 to the last step's")
	}
	if c := h.EmptyCache; c != nil {
		add(countText(c.Calls), emptyCacheText(h))
	}
	if h.Releasable != nil && *h.Releasable > 0 {
		rows = sizeRow(rows, "", h.Releasable, "would be released by empty_cache() at the end of the file")
	}
	return rows
}

// retriesText says what the cache was released for.
func retriesText(h *explain.Health) string {
	said := counted(int(h.Retries), "retry", "retries")
	if len(h.RetriedFor) == 0 {
		return said + ": the cache was released to make room"
	}
	r := &h.RetriedFor[0]
	if int64(r.Count) < h.Retries {
		said += ", most"
	}
	said += " for " + units.Size(r.Request)
	if len(r.Frames) > 0 {
		said += " at " + Clean(r.Site.String())
	}
	return said + fmt.Sprintf(": %s was free, in blocks of up to %s", units.Size(r.Free), units.Size(r.LargestFree))
}

// emptyCacheText says what the calls of empty_cache() in steps cost.
func emptyCacheText(h *explain.Health) string {
	c := h.EmptyCache
	said := fmt.Sprintf("empty_cache() %s in steps", counted(c.Calls, "call", "calls"))
	if h.DriverMS != nil && *h.DriverMS >= c.DriverMSWithout+1 {
		said += fmt.Sprintf(" cost %s", driverTime(*h.DriverMS-c.DriverMSWithout))
	}
	if c.FailsWithout {
		return said + "; without: a request fails"
	}
	if d := int64(c.PeakReservedWithout) - int64(h.PeakReserved); d != 0 {
		return said + fmt.Sprintf("; without: %s peak reserved", units.Delta(d))
	}
	return said + "; without: the same peak reserved"
}

// counted returns the word that goes with a number.
func counted(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Smaller returns the settings with which less is reserved, the least first.
func Smaller(h *explain.Health) []Row {
	var rows []Row
	for i := range h.Smaller {
		s := &h.Smaller[i]
		rows = sizeRow(rows, "", &s.PeakReserved, fmt.Sprintf("%s: %s", lessText(h, s), Clean(s.Export)))
	}
	return rows
}

// SmallerText says what settings save.
func SmallerText(h *explain.Health, s *explain.Smaller) string {
	return fmt.Sprintf("at most %s reserved instead of %s, %s", units.Size(s.PeakReserved), units.Size(h.PeakReserved), lessText(h, s))
}

func lessText(h *explain.Health, s *explain.Smaller) string {
	less := 100 * float64(s.Saved) / float64(max(h.PeakReserved, 1))
	return fmt.Sprintf("%.0f %% less", max(less, 1))
}
