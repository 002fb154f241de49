// Package run holds one loaded run: the trace of one device and everything that
// is derived from it.
//
// A [Run] makes each part when it is first asked for, at most once, and may be
// used from several goroutines:
//
//	r := run.New(t, facts)
//	p, err := r.Program(ctx)    // the calls, checked by a replay of the trace
//	line, err := r.Timeline(ctx) // totals, with the block sizes of that replay
//	a, err := r.Analysis(ctx)   // steps, leaks, spikes, holders
//
// Commands, the page and the report take a Run, so that two of them cannot
// disagree on what a file says, and none replays it again.
//
// A part that a cancelled context leaves unfinished is not kept: whoever asks
// next begins again.
package run
