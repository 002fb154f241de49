package diff

// Ranks is the comparison of several ranks.
type Ranks struct {
	// Sizes says what peaks and cached memory are told by: block sizes, or
	// requested ones if most ranks do not know them.
	Sizes string  `json:"sizes"`
	Ranks []*Rank `json:"ranks"`

	Measures []Measure `json:"measures"`
	Odd      []Odd     `json:"odd"` // the rank that is furthest out first

	// Compared tells that at least two ranks have calls to compare. Common is
	// how many are the same from the beginning, in all ranks that go so far.
	Compared   bool        `json:"calls_compared"`
	Common     int         `json:"calls_in_common"`
	Shifted    bool        `json:"calls_shifted"` // the ranks begin at different moments
	Divergence *Divergence `json:"divergence"`

	Notes []string `json:"notes"`
}

// Ranks compares ranks of the table.
func (x *Table) Ranks(ranks []*Rank) *Ranks {
	rs := &Ranks{Sizes: BlockSizes, Ranks: ranks, Measures: []Measure{}, Odd: []Odd{}, Notes: []string{}}
	sized := 0
	for _, r := range ranks {
		if r.PeakAllocated != nil {
			sized++
		}
	}
	if 2*sized < len(ranks) {
		rs.Sizes = RequestedSizes
		rs.Notes = append(rs.Notes, "sizes are as requested: most ranks have no replay that gives those of the blocks")
	}
	for _, r := range ranks {
		r.use(rs.Sizes)
		for _, n := range r.notes {
			rs.Notes = append(rs.Notes, r.Name+": "+n)
		}
	}
	rs.findOdd()
	x.findDivergence(rs)
	if rs.Shifted {
		rs.Notes = append(rs.Notes, "recording began at different moments: they are compared from where their calls fit best")
	}
	return rs
}
