// Package run holds one loaded run: the trace of one device and everything
// derived from it.
//
// A [Run] computes each part on first use, at most once, and is safe for use by
// several goroutines:
//
//	r := run.New(t, facts)
//	p, err := r.Program(ctx)  // the calls, checked by a replay of the trace
//	h, err := r.History(ctx)  // totals, with the block sizes of that replay
//	a, err := r.Analysis(ctx) // steps, leaks, spikes, holders
//
// Commands, the page and the report share a Run. So they cannot disagree on what
// a file says, and the file is replayed once.
//
// If a context is cancelled before a part is complete, the part is dropped and
// the next caller starts over.
package run
