package cards

import (
	"cmp"
	"slices"
)

// migTable are the MIG profiles of some cards.
type migTable struct {
	Cards    []string     `json:"cards"`
	Source   string       `json:"source"`
	Profiles []MIGProfile `json:"profiles"`
}

// MIGProfile is a kind of GPU instance that a card can be divided into.
type MIGProfile struct {
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`
	Compute int    `json:"compute"` // of the 7 parts of the card's multiprocessors
	Slices  int    `json:"slices"`  // of the 8 parts of its memory
	Starts  []int  `json:"starts"`  // the slices that it may begin at
}

const (
	migCompute = 7
	migSlices  = 8
)

// MIG returns the MIG profiles of a card, smallest first, and where they are from.
// There are none for a card that cannot be divided, or whose profiles the table lacks.
func (c Card) MIG() (profiles []MIGProfile, source string) {
	for _, t := range table().MIG {
		if slices.Contains(t.Cards, c.Name) {
			profiles = slices.Clone(t.Profiles)
			slices.SortStableFunc(profiles, func(a, b MIGProfile) int {
				return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Compute, b.Compute))
			})
			return profiles, t.Source
		}
	}
	return nil, ""
}

// MIGCards returns the names of the cards whose profiles are known.
func MIGCards() (names []string) {
	for _, t := range table().MIG {
		names = append(names, t.Cards...)
	}
	return names
}

// MIGFits reports whether a card can have all of these instances at once.
func MIGFits(profiles []MIGProfile) bool {
	compute := 0
	for _, p := range profiles {
		compute += p.Compute
	}
	return compute <= migCompute && placeMIG(profiles, 0)
}

// placeMIG tries every place of the first profile beside the slices that are taken.
func placeMIG(profiles []MIGProfile, taken uint) bool {
	if len(profiles) == 0 {
		return true
	}
	p := profiles[0]
	for _, at := range p.Starts {
		want := uint(1<<p.Slices-1) << at
		if at+p.Slices <= migSlices && taken&want == 0 && placeMIG(profiles[1:], taken|want) {
			return true
		}
	}
	return false
}
