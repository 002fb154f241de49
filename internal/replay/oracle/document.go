package oracle

import "github.com/ashlar-mem/ashlar/internal/replay"

// Document is what ashlar verify --json prints.
type Document struct {
	Files     []FileDocument `json:"files"`
	Identical int            `json:"identical"`
	Total     int            `json:"total"`
}

// FileDocument is the result of one file.
type FileDocument struct {
	File            string             `json:"file"`
	Kind            string             `json:"kind"`
	Identical       bool               `json:"identical"`
	Events          int                `json:"events"`
	IdenticalEvents int                `json:"identical_events"`
	FirstDifference *replay.Difference `json:"first_difference"`
	PyTorch         *replay.PyTorch    `json:"pytorch"` // null if the file cannot be read
	*SnapshotDocument
	Error string `json:"error,omitempty"`
}

// SnapshotDocument is there for snapshots only.
type SnapshotDocument struct {
	Start             string        `json:"start"`
	Limit             LimitDocument `json:"limit"`
	SegmentsIdentical bool          `json:"segments_identical"`
	Notes             []string      `json:"notes"`
	Contradictions    []string      `json:"contradictions"` // of the file with itself; among the notes, too
}

// LimitDocument is what a snapshot shows of the limit; null is unknown.
type LimitDocument struct {
	MinBytes uint64  `json:"min_bytes"`
	MaxBytes *uint64 `json:"max_bytes"`
}

// Add adds the result of a file, or why there is none.
func (d *Document) Add(name string, r *replay.Result, err error) {
	d.Total++
	if err != nil {
		d.Files = append(d.Files, FileDocument{File: name, Kind: "unknown", Error: err.Error()})
		return
	}
	if r.Identical {
		d.Identical++
	}
	release := replay.NewPyTorch(r.Writer, r.Version)
	f := FileDocument{
		PyTorch: &release,
		File:    name, Kind: r.Kind, Identical: r.Identical, Events: r.Events, IdenticalEvents: r.IdenticalEvents, FirstDifference: r.First,
	}
	if r.Kind == "snapshot" {
		f.SnapshotDocument = newSnapshotDocument(r)
	}
	d.Files = append(d.Files, f)
}

func newSnapshotDocument(r *replay.Result) *SnapshotDocument {
	d := &SnapshotDocument{Start: r.Start, SegmentsIdentical: r.SegmentsIdentical, Notes: append([]string{}, r.Notes...), Contradictions: append([]string{}, r.Contradictions...)}
	d.Limit.MinBytes = r.Limit.Min
	if r.Limit.Max != 0 {
		d.Limit.MaxBytes = &r.Limit.Max
	}
	return d
}
