package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/check"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
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
	json                      bool
	device                    *deviceFlag
}

func newCheck(std stdio) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Hold a recorded run against rules, for continuous integration",
		Long: `Check holds the memory of a recorded run against the rules that are given, one
line for each: its value, its bound, and by how much it is kept or broken.

FILE and OLD are memory snapshots of PyTorch; for peaks also dumps of
memory_stats(). Peaks by block size come from a replay of the events. A snapshot
that starts mid-run has the peaks of its own part. Fragmentation is the part of
reserved memory that was not allocated, where reserved was highest, after the
allocation that took it there.

--survives replays the run under a limit, with the recorded settings or those of
--set, and ends at the first request that fails.

Exit status: 0 all rules hold; 1 a rule is broken; 2 the file or the flags are
wrong, or the file does not tell a value. No rule passes because of a value that
is not known.`,
		Example: "  ashlar check snapshot.pickle --max-reserved 70GiB --max-fragmentation 15\n" +
			"  ashlar check snapshot.pickle --survives 40GiB --set expandable_segments:True\n" +
			"  ashlar check new.pickle --baseline old.pickle --max-growth 3",
		Args: oneFile,
	}
	flags := cmd.Flags()
	flags.Var(&o.maxReserved, "max-reserved", "highest peak of reserved memory")
	flags.Var(&o.maxAllocated, "max-allocated", "highest peak of allocated memory")
	flags.Var(&o.maxFragmentation, "max-fragmentation", "highest part of reserved memory not allocated at the reserved peak, in percent")
	flags.Var(&o.minHeadroom, "min-headroom", "least room between the reserved peak and the limit")
	flags.Var(&o.limit, "limit", "limit for --min-headroom; by default that of the recording, if it shows one")
	flags.Var(&o.survives, "survives", "limit under which a replay must not run out of memory")
	flags.Var(&o.conf, "set", "settings for --survives, as in PYTORCH_CUDA_ALLOC_CONF; by default the recorded ones")
	flags.StringVar(&o.baseline, "baseline", "", "`OLD` file that --max-growth compares with")
	flags.Var(&o.maxGrowth, "max-growth", "highest growth of the reserved and the allocated peak since OLD, in percent")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	o.device = addDeviceFlag(cmd)
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

// sizeFlag is a size, or not given.
type sizeFlag struct {
	text  string
	value *uint64
}

func (f *sizeFlag) Set(s string) error {
	n, err := units.Parse(s)
	if err != nil {
		return err
	}
	*f = sizeFlag{s, &n}
	return nil
}

func (f *sizeFlag) Type() string   { return "SIZE" }
func (f *sizeFlag) String() string { return f.text }

// percentFlag is a number of percent, or not given.
type percentFlag struct {
	text  string
	value *float64
}

func (f *percentFlag) Set(s string) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "%")), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return errors.New("write a number of percent that is not negative, such as 15 or 2.5%")
	}
	*f = percentFlag{s, &v}
	return nil
}

func (f *percentFlag) Type() string   { return "PCT" }
func (f *percentFlag) String() string { return f.text }

// confFlag is a text of settings, or not given.
type confFlag struct{ value *string }

func (f *confFlag) Set(s string) error {
	f.value = &s
	return nil
}

func (f *confFlag) Type() string { return "CONF" }

func (f *confFlag) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// rules reads the flags.
func (o *checkOptions) rules(file string) (check.Rules, error) {
	r := check.Rules{
		MaxReserved: o.maxReserved.value, MaxAllocated: o.maxAllocated.value, MaxFragmentation: o.maxFragmentation.value,
		MinHeadroom: o.minHeadroom.value, Limit: o.limit.value, Survives: o.survives.value, MaxGrowth: o.maxGrowth.value,
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
	case file == "-" && o.baseline == "-":
		return r, errors.New("standard input (-) can be read only once")
	case r == check.Rules{}:
		return r, errors.New("no rule is given: give --max-reserved, --max-allocated, --max-fragmentation, --min-headroom, --survives or --max-growth")
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

// checkAnswer is the JSON form of the answer.
type checkAnswer struct {
	File         string  `json:"file"`
	Device       *int    `json:"device"`
	DeviceReason *string `json:"device_reason"`
	Baseline     *string `json:"baseline"`
	*check.Report
}

// measured is a file and what was found in it.
type measured struct {
	check.Subject
	name   string
	device *int   // nil if the file does not tell, or for host memory
	reason string // why this device, if there was a choice
}

func (o *checkOptions) run(ctx context.Context, std stdio, file string, rules check.Rules) error {
	m, err := o.measure(ctx, std, file, nil, rules.Survives != nil)
	if err != nil {
		return err
	}
	answer := checkAnswer{File: m.name, Device: m.device}
	if m.reason != "" {
		answer.DeviceReason = &m.reason
	}
	if o.baseline != "" {
		old, err := o.measure(ctx, std, o.baseline, m.device, false)
		if err != nil {
			return err
		}
		m.Old, answer.Baseline = old.Measures, &old.name
	}
	answer.Report, err = check.Run(ctx, m.Subject, rules)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return failure{fmt.Errorf("%s: %w", m.name, err)}
	}
	out := bufio.NewWriter(std.out)
	if o.json {
		err = writeJSON(out, answer)
	} else {
		err = text.Check(out, m.name, m.reason, answer.Report, std.style())
	}
	if err := written(errors.Join(err, out.Flush())); err != nil {
		return err
	}
	return answer.status(std)
}

// status is how the command ends.
func (a *checkAnswer) status(std stdio) error {
	for _, r := range a.Rules {
		if r.Passed == nil {
			std.errorf("%s: --%s cannot be told: %s", a.File, strings.ReplaceAll(r.Rule, "_", "-"), firstLine(r.Detail))
		}
	}
	switch {
	case a.Unknown():
		return status(exitInput)
	case !a.Passed:
		return status(exitBad)
	}
	return nil
}

// measure finds the values of a file. Without --device it takes the preferred
// device if the file has that.
func (o *checkOptions) measure(ctx context.Context, std stdio, file string, prefer *int, program bool) (*measured, error) {
	in, err := readInput(ctx, std, file)
	if err != nil {
		return nil, err
	}
	m := &measured{name: in.name}
	switch in.kind {
	case kindMessage:
		return nil, failure{fmt.Errorf("%s is an out-of-memory message, which has no peaks: give a memory snapshot or a memory_stats() dump", in.name)}
	case kindStats:
		dump, err := check.OneDump(in.dumps, o.device.number)
		if err != nil {
			return nil, failure{fmt.Errorf("%s: %w", in.name, err)}
		}
		if dump.Device >= 0 {
			m.device = &dump.Device
		}
		m.Measures, m.NoProgram = check.MeasureDump(dump), "a memory_stats() dump has no events: give a snapshot"
		return m, nil
	}
	t, why, err := stats.Pick(in.snapshot, o.device.number, o.device.host)
	if prefer != nil && o.device.number < 0 && !o.device.host {
		if same, _, err := stats.Pick(in.snapshot, *prefer, false); err == nil {
			t = same
		}
	}
	if err != nil {
		return nil, failure{err}
	}
	m.reason = why
	if !t.Host {
		m.device = &t.Device
	}
	p := startProgress(std, 0, "events replayed")
	defer p.stop()
	if m.Measures, err = check.MeasureTrace(ctx, t, recorder.Read(in.snapshot.Extra), p.at); err != nil {
		return nil, err
	}
	if program {
		return m, m.readProgram(ctx, t)
	}
	return m, nil
}

// readProgram reads the calls for --survives, or notes why there are none.
func (m *measured) readProgram(ctx context.Context, t *trace.Trace) error {
	switch {
	case t.Host:
		m.NoProgram = "host memory has another allocator, which cannot be replayed"
		return nil
	case t.Events.Len() == 0:
		m.NoProgram = "the file has no events: there is nothing to replay"
		return nil
	}
	v, err := verify.Run(ctx, t, verify.Options{})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		m.NoProgram = fmt.Sprintf("the events cannot be replayed: %v", err)
	default:
		m.Program = v.Program()
	}
	return nil
}
