package plan

// Document is what ashlar plan --json prints.
type Document struct {
	File    string `json:"file"`
	Options string `json:"options"`
	*Answer
	Max       *Largest       `json:"max,omitempty"`
	Recompute *BestRecompute `json:"recompute,omitempty"`
	Against   *Against       `json:"against,omitempty"`
	Trace     string         `json:"trace,omitempty"` // the file that the run was written to
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
