package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/check"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// checkOptions are the flags of check.
type checkOptions struct {
	maxReserved, maxAllocated sizeFlag
	maxFragmentation          percentFlag
	minHeadroom, limit        sizeFlag
	survives                  sizeFlag
	conf                      confFlag
	baseline                  string
	maxGrowth                 percentFlag
	maxLeak                   perStepFlag
	maxRetries, maxOOMs       countFlag
	json, markdown            bool
	device                    *deviceFlag
	pytorch                   versionFlag
}

func newCheck(std stdio) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Hold a recorded run against rules, for continuous integration",
		Long: `Check compares the memory of a recorded run with the given rules and prints one
line for each: its value, its bound, and by how much it holds or fails.

Without rules a run fails that ran out of memory (OOM), that leaks memory from
step to step, or that had to release its cache to make room (a retry). With
rules a run in which a request failed still fails, unless --max-ooms allows as
many: for programs that catch the error.

FILE and OLD are memory snapshots of PyTorch; for peaks, retries and OOMs also
dumps of memory_stats(). A log with an out-of-memory message, or with the error
of a library that found memory too small, fails. Peaks by block size come from a
replay of the events. A snapshot that starts mid-run has only the peaks since
its start. Fragmentation is 1 - peak allocated / peak reserved.

--survives replays the run under a limit, with the recorded settings or those of
--set, and ends at the first request that fails.

Exit status: 0 all rules hold; 1 a rule fails; 2 the file or the flags are wrong,
or a value is not in the file. A rule never passes on an unknown value.`,
		Example: "  ashlar check snapshot.pickle\n" +
			"  ashlar check snapshot.pickle --max-reserved 70GiB --max-fragmentation 15\n" +
			"  ashlar check snapshot.pickle --survives 40GiB --set expandable_segments:True\n" +
			"  ashlar check new.pickle --baseline old.pickle --max-growth 3\n" +
			"  ashlar check new.pickle --markdown >> \"$GITHUB_STEP_SUMMARY\"",
		Args: oneFile,
	}
	flags := cmd.Flags()
	flags.Var(&o.maxReserved, "max-reserved", "highest peak of reserved memory")
	flags.Var(&o.maxAllocated, "max-allocated", "highest peak of allocated memory")
	flags.Var(&o.maxFragmentation, "max-fragmentation", "highest fragmentation: 1 - peak allocated / peak reserved, in percent")
	flags.Var(&o.maxLeak, "max-leak", "most that a step may leave behind, such as 1MiB")
	flags.Var(&o.maxRetries, "max-retries", "most releases of the cache to make room")
	flags.Var(&o.maxOOMs, "max-ooms", "most requests that may fail; by default none, whatever the other rules are")
	flags.Var(&o.minHeadroom, "min-headroom", "least difference between the reserved peak and the limit")
	flags.Var(&o.limit, "limit", "limit for --min-headroom; by default that of the recording, if it shows one")
	flags.Var(&o.survives, "survives", "limit under which a replay must not run out of memory")
	flags.Var(&o.conf, "set", "settings for --survives, as in PYTORCH_CUDA_ALLOC_CONF; by default the recorded ones")
	flags.StringVar(&o.baseline, "baseline", "", "`OLD` file that --max-growth compares with")
	flags.Var(&o.maxGrowth, "max-growth", "highest growth of the reserved and the allocated peak since OLD, in percent")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	flags.BoolVar(&o.markdown, "markdown", false, "print a table in Markdown, for the page of a pull request")
	o.device = addDeviceFlag(cmd)
	addVersionFlag(cmd, &o.pytorch)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		rules, err := o.rules(args[0])
		if err != nil {
			return err
		}
		quietPipe()
		return o.run(cmd.Context(), std, args[0], rules)
	}
	return cmd
}

// rules reads the flags.
func (o *checkOptions) rules(file string) (check.Rules, error) {
	r := check.Rules{
		MaxReserved: o.maxReserved.value, MaxAllocated: o.maxAllocated.value, MaxFragmentation: o.maxFragmentation.value,
		MinHeadroom: o.minHeadroom.value, Limit: o.limit.value, Survives: o.survives.value, MaxGrowth: o.maxGrowth.value,
		MaxLeak: o.maxLeak.value, MaxRetries: o.maxRetries.value, MaxOOMs: o.maxOOMs.value,
	}
	switch {
	case r.MaxGrowth != nil && o.baseline == "":
		return r, errors.New("--max-growth needs a file to compare with: give --baseline OLD")
	case r.MaxGrowth == nil && o.baseline != "":
		return r, errors.New("--baseline is for --max-growth: give it too")
	case r.Limit != nil && r.MinHeadroom == nil:
		return r, errors.New("--limit is for --min-headroom: give it too, or --survives to replay under a limit")
	case o.conf.value != nil && r.Survives == nil:
		return r, errors.New("--set is for --survives: give it too")
	case r.Survives != nil && *r.Survives == 0:
		return r, errors.New("--survives is 0: no run survives without memory")
	case o.json && o.markdown:
		return r, errors.New("--json and --markdown both want standard output: give one of them")
	case file == "-" && o.baseline == "-":
		return r, errors.New("standard input (-) can be read only once")
	}
	if o.conf.value != nil {
		s, err := whatif.ParseSetting(*o.conf.value)
		if err != nil {
			return r, failure{fmt.Errorf("--set: %w", err)}
		}
		r.Settings = &s
	}
	return r, nil
}

func (o *checkOptions) run(ctx context.Context, std stdio, file string, rules check.Rules) error {
	defer saveMemory()()
	f, err := o.measure(ctx, std, file, check.Choice{Device: o.device.choice(), Program: rules.Survives != nil, Leaks: rules.Leaks()})
	if err != nil {
		return err
	}
	var old *check.File
	if o.baseline != "" {
		if old, err = o.measure(ctx, std, o.baseline, check.Choice{Device: o.device.choice(), Prefer: f.Device}); err != nil {
			return err
		}
		f.Old = old.Measures
	}
	r, err := check.Run(ctx, f.Subject, rules)
	if err != nil {
		return failed(ctx, fmt.Errorf("%s: %w", f.Name, err))
	}
	err = printAnswer(std, o.json, check.NewDocument(f, old, r), func(w io.Writer) error {
		if o.markdown {
			return text.CheckMarkdown(w, f.Name, f.Reason, r)
		}
		return text.Check(w, f, r, std.style())
	})
	if err != nil {
		return err
	}
	return checkStatus(std, f.Name, r)
}

// measure reads a file and finds its values.
func (o *checkOptions) measure(ctx context.Context, std stdio, file string, c check.Choice) (*check.File, error) {
	in, err := readInput(ctx, std, file)
	if err != nil {
		return nil, err
	}
	o.pytorch.apply(in.Snapshot)
	p := startProgress(std, 0, "events replayed")
	defer p.stop()
	f, err := check.MeasureFile(ctx, in, c, p.update)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return f, nil
}

// checkStatus is how the command ends.
func checkStatus(std stdio, file string, r *check.Report) error {
	for _, rule := range r.Rules {
		if rule.Passed == nil {
			std.errorf("%s: --%s cannot be checked: %s", file, strings.ReplaceAll(rule.Rule, "_", "-"), rule.Detail)
		}
	}
	switch {
	case r.Unknown():
		return status(exitInput)
	case !r.Passed:
		return status(exitBad)
	}
	return nil
}
