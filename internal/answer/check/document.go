package check

import "github.com/ashlar-mem/ashlar/internal/answer"

// Document is what ashlar check --json prints.
type Document struct {
	Warning      string  `json:"warning"` // as in stats
	File         string  `json:"file"`
	Device       *int    `json:"device"`
	DeviceReason *string `json:"device_reason"`
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string `json:"contradictions"`
	Baseline       *string  `json:"baseline"`
	*Report
}

// NewDocument says what a report is about; old is the file to compare with, nil
// if there is none.
func NewDocument(f, old *File, r *Report) *Document {
	d := &Document{Warning: f.Warning, File: f.Name, Device: f.Device, DeviceReason: answer.Known(f.Reason), Contradictions: f.Contradictions, Report: r}
	if old != nil {
		d.Baseline = &old.Name
	}
	return d
}
