package diff

// PairDocument is what ashlar diff A B --json prints.
type PairDocument struct {
	Kind string `json:"kind"`
	*Diff
}

// NewPairDocument leaves out the stacks that are the same, unless all are asked
// for.
func NewPairDocument(d *Diff, full bool) *PairDocument {
	if !full {
		some := *d
		some.Stacks = d.Stacks[:d.Changed()]
		d = &some
	}
	return &PairDocument{"pair", d}
}

// RanksDocument is what ashlar diff A B C --json prints.
type RanksDocument struct {
	Kind string `json:"kind"`
	*Ranks
	Skipped []Skipped `json:"skipped"`
}

// Skipped is a file that could not be read.
type Skipped struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// NewRanksDocument says which files are not among the ranks.
func NewRanksDocument(r *Ranks, skipped []Skipped) *RanksDocument {
	return &RanksDocument{"ranks", r, append([]Skipped{}, skipped...)}
}
