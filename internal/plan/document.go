package plan

import "slices"

// Document is what ashlar plan --json prints.
type Document struct {
	File    string `json:"file"`
	Options string `json:"options"`
	*Answer
	Max       *Largest       `json:"max,omitempty"`
	Recompute *BestRecompute `json:"recompute,omitempty"`
	Against   *Against       `json:"against,omitempty"`
	Trace     string         `json:"trace,omitempty"` // the file that the run was written to
	Sources   []*Source      `json:"sources,omitempty"`
}

// RoughDocument is what ashlar plan --json prints about a model that no family
// describes.
type RoughDocument struct {
	File    string `json:"file"`
	Options string `json:"options"`
	*Rough
	Cards   []RoughOnCard `json:"cards,omitempty"` // with --compare
	Sources []*Source     `json:"sources,omitempty"`
}

// Source is a file of another tool, or its flags, and what became of its keys. A
// text has the key, its value and what it is taken as.
type Source struct {
	File       string   `json:"file"`
	Used       []string `json:"used"`
	NoEffect   []string `json:"no_effect"` // on memory
	NotPlanned []string `json:"not_planned"`
	Unknown    []string `json:"unknown"`
}

// SweepDocument is what ashlar plan --sweep --json prints.
type SweepDocument struct {
	File    string `json:"file"`
	Options string `json:"options"`
	Axes    []Axis `json:"axes"`
	Sweep   []Cell `json:"sweep"`
}

// Fits reports whether something fits, or nothing was named to fit into.
func (d *SweepDocument) Fits() bool {
	asked := false
	for _, c := range d.Sweep {
		if c.Fits != nil {
			if *c.Fits {
				return true
			}
			asked = true
		}
	}
	return !asked
}

// CompareDocument is what ashlar plan --compare --json prints.
type CompareDocument struct {
	File    string `json:"file"`
	Options string `json:"options"`
	Model   string `json:"model"`
	// LeavesOut are parts of the model that are not planned.
	LeavesOut []string  `json:"leaves_out"`
	Cards     []OnCard  `json:"cards"`
	Sources   []*Source `json:"sources,omitempty"`
}

// Fits reports whether the job fits on one of the cards.
func (d *CompareDocument) Fits() bool {
	return slices.ContainsFunc(d.Cards, func(c OnCard) bool { return c.Fits })
}

// RoughVerdict is what a rough plan says about fitting.
type RoughVerdict int

// The verdicts.
const (
	RoughYes  RoughVerdict = iota // it fits, or nothing was named to fit into
	RoughNo                       // not even the lower end fits
	RoughOpen                     // the range is too wide to tell
)

// Verdict is that of the plan; of several cards that of the best.
func (d *RoughDocument) Verdict() RoughVerdict {
	verdict := func(fits *bool, open bool) RoughVerdict {
		switch {
		case open:
			return RoughOpen
		case fits != nil && !*fits:
			return RoughNo
		}
		return RoughYes
	}
	if len(d.Cards) == 0 {
		return verdict(d.Fits, d.Open)
	}
	best := RoughNo
	for _, c := range d.Cards {
		switch v := verdict(c.Fits, c.Fits == nil); {
		case v == RoughYes:
			return v
		case v == RoughOpen:
			best = v
		}
	}
	return best
}
