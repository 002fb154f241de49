package workload

import "github.com/ashlar-mem/ashlar/internal/hostmem/run"

// Document is what ashlar host bench --json prints.
type Document struct {
	Workloads []Compared `json:"workloads"`
	Skipped   []Skipped  `json:"skipped"`
}

// Compared is a workload and how it ran under each malloc.
type Compared struct {
	Workload string `json:"workload"`
	What     string `json:"what"`
	*run.Comparison
}

// Skipped is a workload that could not be run.
type Skipped struct {
	Workload string `json:"workload"`
	Why      string `json:"why"`
}

// NewDocument has nothing in it yet.
func NewDocument() *Document { return &Document{Workloads: []Compared{}, Skipped: []Skipped{}} }

// Add adds a workload that was run.
func (d *Document) Add(w Workload, c *run.Comparison) {
	d.Workloads = append(d.Workloads, Compared{w.Name, w.What, c})
}

// Skip adds one that could not be.
func (d *Document) Skip(w Workload, why error) {
	d.Skipped = append(d.Skipped, Skipped{w.Name, why.Error()})
}
