package explain

import (
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay"
)

// Document is what ashlar explain --json prints.
type Document struct {
	File         *string         `json:"file"`
	Kind         input.Kind      `json:"kind"`
	Device       *int            `json:"device"`
	DeviceReason *string         `json:"device_reason"`
	PyTorch      *replay.PyTorch `json:"pytorch"` // null without a snapshot
	// Contradictions are what the file says that cannot be true together.
	Contradictions []string `json:"contradictions"`
	*Report
}

// NewDocument says what a report is about. File says whether the case has one,
// or only what was given in place of it.
func NewDocument(c *Case, r *Report, file bool) *Document {
	d := &Document{Kind: c.Kind, DeviceReason: answer.Known(c.Reason), Contradictions: append([]string{}, c.contradictions...), Report: r}
	if file {
		name := c.Name // a pointer into the case would keep the run
		d.File = &name
	}
	if c.Loaded != nil {
		p := c.pytorch()
		d.PyTorch = &p
	}
	if device := c.failed(); device >= 0 {
		d.Device = &device
	}
	return d
}
