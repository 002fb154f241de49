package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// whatifOptions are the flags of whatif.
type whatifOptions struct {
	confs   []string
	limit   boundFlag
	memory  boundFlag
	onOOM   wordFlag
	empty   emptyCacheFlag
	noCache bool
	bucket  bucketFlag
	order   bool
	host    sizeFlag
	curve   int
	json    bool
	device  *deviceFlag
	pytorch versionFlag
}

// maxCurve is how many points all curves together may have: more than a page or
// a plot can show.
const maxCurve = 1_000_000

func newWhatif(std stdio) *cobra.Command {
	var o whatifOptions
	cmd := &cobra.Command{
		Use:   "whatif FILE [--set CONF ...]",
		Short: "Predict what other settings would have done to a recorded run",
		Long: `Whatif replays the calls of a snapshot through the allocator engine under other
settings, limits and device sizes, and says for each whether the run passes,
how much memory it reserves at its peak, and what the driver is asked for. The
recorded settings come first. Above the predictions it says how many of the
recorded events the model reproduces.

CONF is written as for PYTORCH_CUDA_ALLOC_CONF; "" stands for the defaults. What
the PyTorch that wrote the file does not know comes last, under "After an
upgrade"; keys that only PyTorch 2.12 or later knows are left out.

--empty-cache changes when torch.cuda.empty_cache() is called: under the recorded
settings, beside the run as it was, and under each CONF. none leaves the recorded
calls out; step:N leaves them out and makes one before step N; every:N makes one
before each step whose number is a multiple of N. A recording shows only the
calls that released something.

Three other flags change the program, each by itself, under the recorded settings
and under each CONF. --bucket pads the sizes that vary from step to step at the
same call site: to the next power of a factor (1.25), of two (pow2), or to the
next size of a list (16MiB,64MiB). --order allocates what is still there after the
last step before everything else. --no-cache switches the cache off, as
PYTORCH_NO_CUDA_MEMORY_CACHING=1 does: every request goes to the driver.

--overflow SIZE serves requests that fail under the limit with up to so much of the
host's memory, cold memory first, as overflow of libashlar.so does: whether the run
passes, how much slower a step becomes, as a range, and what lies there. Kernels
read host memory as fast as on an H200; other machines differ.

The default limit on reserved memory is the recorded one; if none was recorded
but requests were refused, the highest that the events allow. --limit none turns
it off. The default device memory is what was free and reserved at the first
out-of-memory event, if there is one.

FILE is a memory snapshot of PyTorch with events, as pickle, JSON or a page of
PyTorch's memory viewer, compressed with gzip, zstd or not; or - for standard
input.

Exit status: 0 answered, whatever the answer; 2 the file, a CONF or a flag is
wrong, or the command was interrupted, after printing what was known.`,
		Example: "  ashlar whatif snapshot.pickle --set expandable_segments:True --set max_split_size_mb:128\n" +
			"  ashlar whatif snapshot.pickle --set \"\" --limit 40GiB --json\n" +
			"  ashlar whatif snapshot.pickle --empty-cache none\n" +
			"  ashlar whatif snapshot.pickle --no-cache --bucket 1.25 --order",
		Args: oneFile,
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.confs, "set", nil, "settings to try, as in PYTORCH_CUDA_ALLOC_CONF; may be given several times")
	flags.Var(&o.limit, "limit", "cap on reserved memory, or none; by default that of the recording")
	flags.Var(&o.memory, "device-memory", "device memory for the allocator, or none for unlimited; by default as the recording shows")
	o.onOOM = wordFlag{whatif.OnOOMDie, []string{whatif.OnOOMDie, whatif.OnOOMSkip}}
	flags.Var(&o.onOOM, "on-oom", "at a request that fails: die (end there), or skip (leave it out and continue, as a program that catches the error)")
	flags.Var(&o.empty, "empty-cache", "call empty_cache() otherwise than recorded: none, step:N or every:N")
	flags.BoolVar(&o.noCache, "no-cache", false, "send every request to the driver, as PYTORCH_NO_CUDA_MEMORY_CACHING=1")
	flags.Var(&o.bucket, "bucket", "pad the sizes that vary: a factor such as 1.25, pow2, or a list of sizes")
	flags.BoolVar(&o.order, "order", false, "allocate what stays before everything else")
	flags.Var(&o.host, "overflow", "serve requests that fail with up to so much host memory, and say what that costs")
	flags.IntVar(&o.curve, "curve", 0, "with --json: the memory curve of each run in `N` points")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	o.device = addDeviceFlag(cmd)
	addVersionFlag(cmd, &o.pytorch)
	cmd.RunE = asks(o.question, func(ctx context.Context, file string, q whatif.Question) error { return o.run(ctx, std, file, q) })
	return cmd
}

// asks runs a command that puts a question, made from its flags, to a file.
func asks[Q any](question func() (Q, error), run func(ctx context.Context, file string, q Q) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		q, err := question()
		if err != nil {
			return err
		}
		quietPipe()
		return run(cmd.Context(), args[0], q)
	}
}

// emptyCacheFlag says when empty_cache() is called.
type emptyCacheFlag struct{ whatif.EmptyCache }

func (f *emptyCacheFlag) Set(s string) (err error) {
	f.EmptyCache, err = whatif.ParseEmptyCache(s)
	return err
}

func (f *emptyCacheFlag) Type() string { return "WHEN" }

func (f *emptyCacheFlag) String() string { return f.When }

// bucketFlag says how sizes are padded.
type bucketFlag struct{ whatif.Bucket }

func (f *bucketFlag) Set(s string) (err error) {
	f.Bucket, err = whatif.ParseBucket(s)
	return err
}

func (f *bucketFlag) Type() string { return "SIZES" }

func (f *bucketFlag) String() string { return f.Text }

// question reads the flags, as far as they do not depend on the file.
func (o *whatifOptions) question() (whatif.Question, error) {
	q := whatif.Question{
		SkipOOM: o.onOOM.value == whatif.OnOOMSkip, Points: o.curve,
		EmptyCache: o.empty.EmptyCache, NoCache: o.noCache, Bucket: o.bucket.Bucket, Order: o.order,
	}
	if o.host.value != nil {
		if *o.host.value == 0 {
			return q, errors.New("--overflow 0 serves nothing: give how much of the host's memory requests may take, such as 64GiB")
		}
		q.Overflow = *o.host.value
	}
	changes := 0
	for _, given := range []bool{o.empty.When != "", o.bucket.Text != "", o.order} {
		if given {
			changes++
		}
	}
	runs := 2 + len(o.confs) + changes*(len(o.confs)+1)
	if len(o.confs) == 0 && o.limit.text == "" && o.memory.text == "" && changes == 0 && !o.noCache && q.Overflow == 0 {
		return q, errors.New("nothing to try: give --set CONF, or --limit, --device-memory, --empty-cache, --no-cache, --bucket, --order or --overflow for the recorded settings")
	}
	if err := o.checkCurve(runs, "settings"); err != nil {
		return q, err
	}
	var err error
	q.Settings, err = o.settings()
	return q, err
}

// checkCurve returns what is wrong with --curve for so many runs.
func (o *whatifOptions) checkCurve(runs int, what string) error {
	switch {
	case o.curve < 0 || o.curve > maxCurve:
		return fmt.Errorf("--curve is %d: it must be from 1 to %s", o.curve, count(maxCurve))
	case o.curve*runs > maxCurve:
		return fmt.Errorf("--curve %d for %d %s is more than %s points in all: give fewer", o.curve, runs, what, count(maxCurve))
	case o.curve > 0 && !o.json:
		return errors.New("--curve is for --json: give it too")
	}
	return nil
}

// settings reads --set.
func (o *whatifOptions) settings() (out []whatif.Setting, err error) {
	for _, conf := range o.confs {
		s, err := whatif.ParseSetting(conf)
		if err != nil {
			return nil, failure{fmt.Errorf("--set: %w", err)}
		}
		out = append(out, s)
	}
	return out, nil
}

func (o *whatifOptions) run(ctx context.Context, std stdio, file string, q whatif.Question) error {
	defer saveMemory()()
	f, t, why, err := readReplayable(ctx, std, file, o.device)
	if err != nil {
		return err
	}
	o.pytorch.apply(f)
	a, err := o.ask(ctx, std, f, t, q)
	if err != nil {
		return err
	}
	about := answer.NewSubject(f, t, why)
	err = printAnswer(std, o.json, whatif.NewDocument(about, a), func(w io.Writer) error {
		return text.WhatIf(w, text.WhatIfHead{Subject: about, Events: t.Events.Len()}, a, std.style())
	})
	return endAnswer(std, err, a.Interrupted, len(a.Results), len(a.NotRun), "settings")
}

// endAnswer ends a command that has printed what it knows; err is of printing it.
func endAnswer(std stdio, err error, interrupted bool, answered, not int, what string) error {
	if err == nil && interrupted {
		std.errorf("interrupted: %s of %s %s are answered", count(answered), count(answered+not), what)
		return status(exitInput)
	}
	return err
}

// ask puts the question to a trace.
func (o *whatifOptions) ask(ctx context.Context, std stdio, f *snapshot.File, t *trace.Trace, q whatif.Question) (*whatif.Answer, error) {
	p := startProgress(std, len(q.Settings)+1, "settings replayed")
	defer p.stop()
	if q.Progress == nil {
		q.Progress = p.update
	}
	loaded := run.New(t, recorder.Read(f.Extra))
	loaded.NoSizes = true
	r, err := whatif.Check(ctx, f.Name, loaded)
	if err != nil {
		return nil, failed(ctx, err)
	}
	q.Limit, q.Memory = whatif.Bounds(r, o.limit.bytes, o.memory.bytes)
	a, err := whatif.Ask(ctx, r, q)
	if err != nil {
		return nil, failure{fmt.Errorf("%s: %w", f.Name, err)}
	}
	return a, nil
}
