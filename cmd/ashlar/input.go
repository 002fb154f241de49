package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/internal/answer/check"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// gcPercent is how much garbage there may be while a snapshot is read or
// replayed, on top of what is in use. Nearly all that is allocated then stays,
// so little is lost by collecting the rest soon.
const gcPercent = 40

// saveMemory has garbage collected sooner, for work on a large trace that makes
// little of it. The function it returns ends that.
func saveMemory() (end func()) {
	before := debug.SetGCPercent(gcPercent)
	return func() { debug.SetGCPercent(before) }
}

// A command takes 256 MiB and twice the bytes of what it read, decompressed. Of
// these 256 MiB the heap has heapBase: the program itself and stacks need some.
const heapBase = 208 << 20

// inputBytes is what was read so far.
var inputBytes atomic.Int64

// limitMemory has garbage collected before the heap is larger than what was read
// allows for. Files whose events take few bytes would come to more otherwise; with
// others the heap never gets there. A limit that the user set is left alone.
func limitMemory(read int64) {
	if total := inputBytes.Add(read); os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapBase + 2*total)
	}
}

// readInput reads FILE, or standard input for "-", and finds out what it is.
// Warnings go to standard error.
func readInput(ctx context.Context, std stdio, arg string) (*input.Input, error) {
	if err := std.agent.mayRead(arg); err != nil {
		return nil, failure{err}
	}
	defer saveMemory()()
	p := sync.OnceValue(func() *progress { return startProgress(std, 0, "MiB of "+input.Name(arg)+" read") })
	defer func() { p().stop() }()
	in, err := input.Open(ctx, arg, input.Options{
		Stdin:    std.in,
		Progress: func(read, total int64) { p().update(int(read>>20), int(total>>20)) },
		Warn: func(text string) {
			p().stop()
			std.errorf("%s", text)
		},
	})
	if err != nil {
		return nil, failed(ctx, err)
	}
	if in.Snapshot != nil {
		limitMemory(in.Snapshot.Bytes)
	}
	return in, nil
}

// readSnapshot reads an input that has to be a snapshot.
func readSnapshot(ctx context.Context, std stdio, arg string) (*snapshot.File, error) {
	in, err := readInput(ctx, std, arg)
	if err != nil {
		return nil, err
	}
	if in.Kind != input.Snapshot {
		return nil, failure{fmt.Errorf("%s is %s: give a memory snapshot", in.Name, in.Kind.Words())}
	}
	return in.Snapshot, nil
}

// readReplayable reads a snapshot of whose devices one can be replayed. why says
// why it is that one, if there was a choice.
func readReplayable(ctx context.Context, std stdio, arg string, d *deviceFlag) (f *snapshot.File, t *trace.Trace, why string, err error) {
	if f, err = readSnapshot(ctx, std, arg); err != nil {
		return nil, nil, "", err
	}
	if t, why, err = input.Replayable(f, d.choice()); err != nil {
		return nil, nil, "", failed(ctx, err)
	}
	return f, t, why, nil
}

// readMessage reads --message: a file if there is one of that name, else the
// text itself.
func readMessage(ctx context.Context, std stdio, text string) (*input.Input, error) {
	if info, err := os.Stat(text); text == "-" || err == nil && !info.IsDir() {
		in, err := readInput(ctx, std, text)
		if err == nil && len(in.Messages)+len(in.Refusals) == 0 {
			err = failure{fmt.Errorf("--message: %s has no out-of-memory message; paste the whole error", in.Name)}
		}
		return in, err
	}
	in, err := input.FromMessage(text)
	if err != nil {
		return nil, failure{fmt.Errorf("--message: %w", err)}
	}
	return in, nil
}

// failed is the error of work on an input, unless it was interrupted. Where a
// flag would help it says so.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		memory *input.NoMemoryError
		host   *input.NoHostError
		other  *input.OtherDeviceError
		dumps  *check.SeveralDumpsError
		plan   *problem.Error
		limit  *explain.LimitError
	)
	switch {
	case errors.As(err, &limit):
		err = fmt.Errorf("%w; leave out --limit, or give one that is possible", err)
	case errors.As(err, &memory):
		err = fmt.Errorf("%w: leave out --device", err)
	case errors.As(err, &host):
		err = fmt.Errorf("%w: leave out --device host", err)
	case errors.As(err, &other):
		err = fmt.Errorf("%w; leave out --device", err)
	case errors.As(err, &dumps):
		err = fmt.Errorf("%w: choose one with --device, or give a file with one", err)
	case errors.As(err, &plan):
		err = errors.New(problem.Flags(err))
	}
	return failure{err}
}
