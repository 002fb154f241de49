package main

import (
	"context"

	"github.com/ashlar-mem/ashlar/snapshot"
)

// readSnapshot reads a snapshot; - is standard input.
func readSnapshot(ctx context.Context, std stdio, in string) (*snapshot.File, error) {
	p := startPercent(std, "percent of "+in+" read")
	opts := snapshot.Options{Progress: p.set}
	var f *snapshot.File
	var err error
	if in == "-" {
		f, err = snapshot.Read(ctx, "stdin", std.in, opts)
	} else {
		f, err = snapshot.Open(ctx, in, opts)
	}
	p.stop()
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, failure{err}
	}
	if f.Truncated != nil {
		std.errorf("%s: %v", f.Name, f.Truncated)
	}
	for _, w := range f.Warnings {
		std.errorf("%s: %s", f.Name, w)
	}
	return f, nil
}
