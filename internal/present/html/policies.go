package html

import (
	"github.com/ashlar-mem/ashlar/internal/answer/policies"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// policyTable is what other allocators would have done with the run.
type policyTable struct {
	Rows   []policyRow
	Legend string
}

// policyRow is one allocator.
type policyRow struct {
	Name     string
	Fails    bool
	Verdict  string
	Reserved size
	Over     string
	Inside   string
	Outside  string
	Calls    string
	Driver   string
}

func newPolicyTable(s *subject) *policyTable {
	if s.Policies == nil {
		return nil
	}
	t := &policyTable{Legend: text.PolicyLegend(false)}
	for _, r := range s.Policies.Results {
		if r.PeakReserved == nil {
			continue
		}
		cells := text.PolicyRow(r, s.Policies.OnOOM)
		t.Rows = append(t.Rows, policyRow{
			Name: cells[0], Fails: r.Fails, Verdict: cells[1], Reserved: newSize("policies.peak_reserved_bytes", *r.PeakReserved),
			Over: cells[3], Inside: cells[5], Outside: cells[6], Calls: cells[7], Driver: cells[8],
		})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// ReportedPolicies are the policies of a report: those that answer at once, and the
// same every time.
func ReportedPolicies() (out []string) {
	for _, n := range policies.Names {
		if n != policies.StaticPlan && n != policies.Managed && n != policies.ManagedPrefetch {
			out = append(out, n)
		}
	}
	return out
}
