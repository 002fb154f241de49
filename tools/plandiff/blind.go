package main

import (
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// blind are the runs that were planned before they were measured. What was
// committed then is compared; the plans of today are judged too.
func (b *bench) blind() error {
	cases, err := plancompare.Blind()
	if err != nil {
		return err
	}
	before, err := plancompare.Predicted()
	if err != nil {
		return err
	}
	var rows, expandable, device [][]string
	var then, today [2][]float64
	var expandableErrs, deviceErrs []float64
	for i := range cases {
		c := &cases[i]
		if c.Limit > 0 || !b.wanted(c.Name) {
			continue
		}
		b.runs++
		p := before[c.Name]
		said, err := describe(c.Spec, c.Params)
		if err != nil {
			return err
		}
		row := append([]string{c.Name, said}, pair(&then[0], p.Allocated, c.PeakAllocated)...)
		rows = append(rows, append(row, pair(&then[1], p.Reserved, c.PeakReserved)...))
		if a, err := ask(c.Spec); err != nil {
			fmt.Fprintf(b.out, "%s: %v\n", c.Name, err)
			today[0], today[1] = append(today[0], math.Inf(1)), append(today[1], math.Inf(1))
		} else {
			pair(&today[0], a.PeakAllocated, c.PeakAllocated)
			pair(&today[1], a.PeakReserved, c.PeakReserved)
		}
		if c.Spec.Conf() != "" {
			expandable = append(expandable, append([]string{c.Name}, pair(&expandableErrs, p.Reserved, c.PeakReserved)...))
		}
		if c.Spec.Alone() {
			device = append(device, append([]string{c.Name}, pair(&deviceErrs, p.Device, c.DeviceUsed)...))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	b.title("Planned before they were measured")
	b.table(peakColumns, rows)
	b.verdicts("", blindBars, then)
	b.verdicts("planned today: ", blindBars, today)
	if len(b.only) > 0 {
		return nil
	}
	b.title("Under a limit a little above and a little below the smallest one")
	b.table([]string{"case", "smallest limit planned", "cap", "planned", "the run"}, b.limits(cases, before))
	b.title("With expandable_segments:True")
	b.table([]string{"case", "reserved", "planned", "error"}, expandable)
	b.verdict("", expandableBar, expandableErrs)
	fmt.Fprintln(b.out)
	b.title("The device (mem_get_info), alone on the GPU")
	b.table([]string{"case", "used", "planned", "error"}, device)
	b.verdict("", deviceBar, deviceErrs)
	fmt.Fprintln(b.out)
	return nil
}

// limits are the runs that had a cap. One that ends otherwise than planned is a
// failure.
func (b *bench) limits(cases []plancompare.BlindCase, before map[string]plancompare.Prediction) (rows [][]string) {
	verb := map[bool]string{true: "survives", false: "dies"}
	for i := range cases {
		c := &cases[i]
		if c.Limit == 0 {
			continue
		}
		least := before[c.Name].SmallestLimit
		planned, real := c.Limit >= least, c.Died == ""
		b.failed = b.failed || planned != real
		rows = append(rows, []string{
			c.Name, units.Size(least), fmt.Sprintf("%+.0f %%", 100*(float64(c.Limit)/float64(least)-1)), verb[planned], verb[real],
		})
	}
	return rows
}
