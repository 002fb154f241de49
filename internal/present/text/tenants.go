package text

import (
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/answer/tenants"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Tenants writes how recorded runs share a GPU.
func Tenants(w io.Writer, a *tenants.Answer, style Style) error {
	p := &page{w: w, style: style}
	for i := range a.Tenants {
		p.tenant(&a.Tenants[i])
	}
	p.heading("Arrangements", " under "+units.Size(a.Limit))
	p.arrangements(a)
	for _, r := range a.Arrangements {
		p.heading(arrangementTitle(r.Name), "")
		p.tenantResults(r)
	}
	p.printf("\n")
	for _, n := range a.Notes {
		p.wrapped("  note: ", n)
	}
	p.tenantsLegend(a)
	return p.err
}

// tenant says what a tenant is and how well the model fits its run.
func (p *page) tenant(t *tenants.Tenant) {
	p.name("", Clean(t.Name)+": "+t.File)
	p.wrapped("  ", t.SelfCheck.Note)
	terms := units.Size(t.Guarantee) + " guaranteed"
	if t.Guarantee == 0 {
		terms = "nothing guaranteed"
	}
	if t.Ceiling != nil {
		terms += ", at most " + units.Size(*t.Ceiling)
	}
	p.wrapped("  ", fmt.Sprintf("%s, priority %d; %s", terms, t.Priority, confText(t.Settings)))
}

func arrangementTitle(name string) string {
	switch name {
	case tenants.Shared:
		return "One engine for all"
	case tenants.Hard:
		return "A hard split"
	case tenants.MIG:
		return "MIG instances"
	}
	return "Tenants"
}

// arrangements writes a line for each arrangement.
func (p *page) arrangements(a *tenants.Answer) {
	g := grid{left: 2, head: [][]string{{"", "", "smallest", "of the joint", "idle on"}, {"arrangement", "verdict", "limit", "live peak", "average"}}}
	for _, r := range a.Arrangements {
		verdict, least, of, idle := "passes", "-", "-", "-"
		if r.Fails {
			verdict = "fails"
		}
		if r.SmallestLimit != nil {
			least, idle = units.Size(*r.SmallestLimit), units.Size(*r.IdleMean)
			if a.PeakLive > 0 {
				of = fmt.Sprintf("%.3f", float64(*r.SmallestLimit)/float64(a.PeakLive))
			}
		}
		g.rows = append(g.rows, []string{r.Name, verdict, least, of, idle})
	}
	for _, l := range g.lines(p.columns()) {
		p.line("%s", l)
	}
}

// tenantResults writes a line for each run of an arrangement.
func (p *page) tenantResults(a *tenants.Arrangement) {
	if len(a.Results) == 0 {
		p.wrapped("  ", "It cannot be made; a note says why.")
		return
	}
	g := grid{
		left: 1, cut: 0,
		head: [][]string{
			{"", "", "", "within", "peak", "peak", "trims", "trims", "", "driver"},
			{"tenant", "requests", "failed", "guarantee", "reserved", "allocated", "suffered", "caused", "retries", "time"},
		},
		drop: []int{5, 8, 9},
	}
	alone := a.Results[0].Share != nil
	if alone {
		g.head[0][6], g.head[1][6], g.head[0][7], g.head[1][7] = "", "share", "", ""
	}
	for _, r := range a.Results {
		reserved := "-"
		if r.PeakReserved != nil {
			reserved = units.Size(*r.PeakReserved)
		}
		row := []string{
			Clean(r.Tenant), countText(r.Requests), countText(r.Failures), countText(r.Guaranteed), reserved, units.Size(r.PeakAllocated),
			units.Count(r.Trims), units.Count(r.TrimsCaused), units.Count(r.Retries), driverTime(r.DriverMS),
		}
		if alone {
			row[6], row[7] = units.Size(*r.Share), ""
			if r.Profile != nil {
				row[7] = *r.Profile
			}
		}
		g.rows = append(g.rows, row)
	}
	for _, l := range g.lines(p.columns()) {
		p.line("%s", l)
	}
}

func (p *page) tenantsLegend(a *tenants.Answer) {
	how := "The runs are stretched to the same length"
	if a.Clock == tenants.ByTime {
		how = "The runs are played by their recorded times"
	}
	fails := "a run ends at its first request that fails, and what it holds is freed"
	if a.OnOOM == whatif.OnOOMSkip {
		fails = "a request that fails is left out"
	}
	p.wrapped("  ", how+"; "+fails+". Together they have "+units.Size(a.PeakLive)+" allocated at most, so nothing needs less. "+
		"Within guarantee are the failures that a guarantee forbids: for tenants always 0. Idle on average is what nobody has allocated of the smallest limit. "+
		"Recorded runs ask for no revocable blocks, so nothing is lent.")
}
