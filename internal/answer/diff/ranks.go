package diff

import "fmt"

// Ranks is the comparison of several ranks.
type Ranks struct {
	// Sizes says what peaks and cached memory are measured in: block sizes, or
	// requested ones if most ranks do not know them.
	Sizes string  `json:"sizes"`
	Ranks []*Rank `json:"ranks"`

	Measures []Measure `json:"measures"`
	Odd      []Odd     `json:"odd"` // the rank that is furthest out first

	// Compared reports whether at least two ranks have calls to compare. Common
	// is how many are the same from the beginning, in all ranks that go so far.
	Compared   bool        `json:"calls_compared"`
	Common     int         `json:"calls_in_common"`
	Shifted    bool        `json:"calls_shifted"` // the ranks begin at different moments
	Divergence *Divergence `json:"divergence"`

	Notes []string `json:"notes"`
}

// Ranks compares ranks of the table.
func (x *Table) Ranks(ranks []*Rank) *Ranks {
	rs := CompareNumbers(ranks)
	x.findDivergence(rs)
	if rs.Shifted {
		rs.Notes = append(rs.Notes, "recording began at different moments: ranks are compared from where their calls match best")
	}
	return rs
}

// CompareNumbers compares ranks by their peaks and counts. They need not be of a
// table; their calls are not compared.
func CompareNumbers(ranks []*Rank) *Ranks {
	rs := &Ranks{Sizes: BlockSizes, Ranks: ranks, Measures: []Measure{}, Odd: []Odd{}, Notes: []string{}}
	sized := 0
	for _, r := range ranks {
		if r.PeakAllocated != nil {
			sized++
		}
	}
	if 2*sized < len(ranks) {
		rs.Sizes = RequestedSizes
		rs.Notes = append(rs.Notes, "sizes are requested sizes: most ranks have no replay that gives block sizes")
	}
	for _, r := range ranks {
		r.use(rs.Sizes)
	}
	rs.rankNotes()
	rs.findOdd()
	return rs
}

// rankNotes says what is to be said about single ranks, the same only once.
func (rs *Ranks) rankNotes() {
	var order []string
	who := map[string][]string{}
	for _, r := range rs.Ranks {
		for _, n := range r.notes {
			if len(who[n]) == 0 {
				order = append(order, n)
			}
			who[n] = append(who[n], r.Name)
		}
	}
	for _, n := range order {
		name := who[n][0]
		switch others := len(who[n]) - 1; {
		case others == 1:
			name += " and " + who[n][1]
		case others > 1:
			name += fmt.Sprintf(" and %s others", count(others))
		}
		rs.Notes = append(rs.Notes, name+": "+n)
	}
}
