package html

import (
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/input"
)

// Document is what ashlar report --json prints about the file that was written.
type Document struct {
	File         string     `json:"file"`
	Kind         input.Kind `json:"kind"`
	Device       *int       `json:"device"`
	DeviceReason *string    `json:"device_reason"`
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string `json:"contradictions"`
	Report         string   `json:"report"`
	ReportBytes    int64    `json:"report_bytes"`
	Cause          *string  `json:"cause"`
	Confidence     *string  `json:"cause_confidence"`
	Summary        *string  `json:"summary"`
}

// NewDocument is about a report on a case, in a file of that name and size.
// There is a cause unless r is nil.
func NewDocument(c *explain.Case, r *explain.Report, report string, size int64) *Document {
	about := explain.NewDocument(c, r, true)
	d := &Document{
		File: c.Name, Kind: c.Kind, Device: about.Device, DeviceReason: about.DeviceReason, Contradictions: about.Contradictions, Report: report, ReportBytes: size,
	}
	if r != nil {
		d.Cause, d.Confidence, d.Summary = &r.Cause, &r.CauseConfidence, &r.Summary
	}
	return d
}
