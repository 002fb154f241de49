package run

// Made says how often each part was made to the end: once, or not at all.
type Made struct {
	Start, Annotations, Verified, Outline, History, Lives, Analysis, Findings, Indices int
}

// Made returns what was made so far.
func (r *Run) Made() Made {
	return Made{
		Start: r.start.count(), Annotations: r.annotations.count(), Verified: r.verified.count(), Outline: r.outline.count(),
		History: r.history.count(), Lives: r.lifetimes.count(), Analysis: r.analysis.count(), Findings: r.findings.count(),
		Indices: r.indices.count(),
	}
}
