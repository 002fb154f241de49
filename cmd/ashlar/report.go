package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/policies"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/present/html"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/version"
)

// reportOptions are the flags of report.
type reportOptions struct {
	explainOptions
	interactive bool
	hidden      anonymousFlags
	out         string
	confs       []string
}

// maxReportSettings is how many settings a report has room for.
const maxReportSettings = 40

func newReport(std stdio) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Write a report to attach: one HTML file that stands alone",
		Long: `Report writes one HTML file about a run: the verdict of explain and what would
have helped, memory over time with the peak and the failure, the map of segments
and who holds the memory then, findings, what other settings would have done, and
the statistics. It has no script, loads nothing, is always under 5 MB, prints well,
and shows names of files without their folders.

With --interactive it writes the page of ashlar view instead, with FILE inside: one
HTML file that opens in any browser, offline and without ashlar, and answers there.
FILE must be a memory snapshot. Without a FILE the page is empty, and files are
dropped onto it; nothing leaves the browser.

With --anonymous neither has names of yours, to be shown to strangers: paths,
functions, annotations, user_metadata and notes become words. Numbers stay as they
are, and so do the answers. ashlar convert --anonymous does it to the file itself.

The settings tried are those that explain tries; --set and --settings add
others. Numbers are those of explain, whatif and stats with the same flags.

FILE is a memory snapshot of PyTorch, a dump of memory_stats(), an out-of-memory
message, or a log with them; compressed with gzip, zstd or not; or - for standard
input. A file that ends early, has no events or has no failure is reported on as
far as it goes. Of several devices one is shown; the others are listed.

The report replaces an older one only when it is complete.

Exit status: 0 written, whatever the cause; 2 the file, or a flag, is wrong.`,
		Example: "  ashlar report oom.pickle -o report.html\n" +
			"  ashlar report oom.pickle --interactive -o run.html\n" +
			"  ashlar report oom.pickle --limit 40GiB --set max_split_size_mb:256\n" +
			"  ashlar report oom.pickle -o - | gzip > report.html.gz",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.interactive && len(args) == 0 {
				return nil
			}
			return oneFile(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.interactive, "interactive", false, "write the page of ashlar view instead, with FILE and all that answers inside")
	flags.StringVarP(&o.out, "output", "o", "", "the `FILE` to write, or - for standard output (default the input's name with .html)")
	flags.Var(&o.limit, "limit", "the limit on reserved memory, if you know it")
	flags.StringArrayVar(&o.confs, "set", nil, "settings to try too, as in PYTORCH_CUDA_ALLOC_CONF; may be given several times")
	flags.StringVar(&o.settings, "settings", "", "what you believe PYTORCH_CUDA_ALLOC_CONF was, as for explain: `CONF`; it is tried too")
	flags.StringVar(&o.message, "message", "", "the out-of-memory message, if the file lacks it: its `TEXT`, or a file with it")
	flags.StringVar(&o.stats, "stats", "", "a `FILE` with a dump of memory_stats()")
	flags.BoolVar(&o.json, "json", false, "print one JSON document about what was written")
	o.device = addDeviceFlag(cmd)
	addVersionFlag(cmd, &o.pytorch)
	addAnonymousFlags(cmd, &o.hidden)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.hidden.check(); err != nil {
			return err
		}
		for _, name := range []string{"message", "stats"} {
			if o.hidden.on && cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s: with --anonymous a report is about FILE alone, from which names can be taken; leave the flag out", name)
			}
		}
		if o.interactive {
			return o.runInteractive(cmd, std, args)
		}
		o.believed = cmd.Flags().Changed("settings")
		settings, err := o.check(args[0])
		if err != nil {
			return err
		}
		quietPipe()
		return o.write(cmd.Context(), std, args[0], settings)
	}
	return cmd
}

// check looks at the flags and reads the settings to try.
func (o *reportOptions) check(file string) ([]whatif.Setting, error) {
	switch {
	case o.out == "" && file == "-":
		return nil, errors.New("standard input has no name: give -o FILE, or -o - for standard output")
	case o.out == "":
		o.out = file + ".html"
	case o.out == "-" && o.json:
		return nil, errors.New("-o - and --json both want standard output: give -o FILE")
	}
	switch {
	case o.limit.value != nil && *o.limit.value == 0:
		return nil, errors.New("--limit is 0: leave it out if there is none")
	case o.device.host:
		return nil, errors.New("--device host: host memory has another allocator, which is not explained; choose a device")
	case len(o.confs) > maxReportSettings:
		return nil, fmt.Errorf("--set is given %d times: a report has room for %d; ashlar whatif takes more", len(o.confs), maxReportSettings)
	}
	var settings []whatif.Setting
	for _, conf := range o.confs {
		s, err := whatif.ParseSetting(pastedSettings(conf))
		if err != nil {
			return nil, failure{fmt.Errorf("--set: %w", err)}
		}
		settings = append(settings, s)
	}
	if o.believed {
		o.settings = pastedSettings(o.settings)
		s, err := whatif.ParseSetting(o.settings)
		if err != nil {
			return nil, failure{fmt.Errorf("--settings: %w", err)}
		}
		settings = append(settings, s)
	}
	return settings, nil
}

func (o *reportOptions) write(ctx context.Context, std stdio, file string, settings []whatif.Setting) error {
	defer saveMemory()()
	if file != "-" && o.out != "-" && sameFile(file, o.out) {
		return failure{fmt.Errorf("%s is the same file as FILE: name another", o.out)}
	}
	in, c, err := o.collect(ctx, std, file, settings)
	if err != nil {
		return err
	}
	if o.out == "-" {
		return written(html.Write(ctx, std.out, in))
	}
	out, err := createOutput(ctx, o.out)
	if err != nil {
		return err
	}
	defer out.abort()
	if err := html.Write(ctx, out, in); err != nil {
		return out.failed(err)
	}
	if err := out.commit(); err != nil {
		return err
	}
	if !o.json {
		return said(std.out, []*output{out})
	}
	return printAnswer(std, true, html.NewDocument(c, in.Explain, out.file.Target(), out.file.Size()), nil)
}

// collect gathers all that a report has.
func (o *reportOptions) collect(ctx context.Context, std stdio, file string, settings []whatif.Setting) (html.Input, *explain.Case, error) {
	out := html.Input{Version: version.Program()}
	in, _, err := o.hidden.read(ctx, std, file)
	if err != nil {
		return out, nil, err
	}
	o.pytorch.apply(in.Snapshot)
	out.Name = in.Name
	c, err := o.begin(ctx, std)
	if err != nil {
		return out, nil, err
	}
	if in.Snapshot == nil {
		err = o.text(ctx, std, in, c, &out)
	} else {
		err = o.snapshot(ctx, std, in, c, settings, &out)
	}
	return out, c, err
}

// text reports on a dump or a message.
func (o *reportOptions) text(ctx context.Context, std stdio, in *input.Input, c *explain.Case, out *html.Input) error {
	if err := c.AddFile(ctx, in); err != nil {
		return failed(ctx, err)
	}
	d, err := collectStats(ctx, std, in, stats.Options{Device: o.device.choice()})
	if err != nil {
		return err
	}
	var facts bytes.Buffer
	if err := text.Stats(&facts, d, text.Style{}); err != nil {
		return err
	}
	out.Text = facts.String()
	out.NoWhatIf = "Other settings can be tried on a snapshot with events only: " + in.Name + " is " + in.Kind.Words() + "."
	if out.Explain, err = explained(ctx, std, c); err != nil {
		return failed(ctx, err)
	}
	return nil
}

// snapshot reports on a snapshot. What cannot be replayed is reported on without
// a verdict.
func (o *reportOptions) snapshot(ctx context.Context, std stdio, in *input.Input, c *explain.Case, settings []whatif.Setting, out *html.Input) error {
	t, _, err := c.Pick(in.Snapshot)
	if err != nil {
		return failed(ctx, err)
	}
	unreplayable := addFile(ctx, std, c, in)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out.Run = c.Loaded
	d, err := collectStats(ctx, std, in, stats.Options{Device: input.Device{Number: t.Device}, Run: c.Loaded})
	if err != nil {
		return err
	}
	out.Facts = d.Snapshot
	if unreplayable == nil {
		out.Explain, unreplayable = explained(ctx, std, c)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case unreplayable != nil:
		out.NoVerdict = "The run cannot be explained. " + unreplayable.Error() + ". What the file tells is below."
		out.NoWhatIf = "Other settings cannot be tried: the events of the file cannot be replayed."
		return nil
	}
	if c.Run == nil || t.Events.Len() == 0 {
		out.NoWhatIf = "Other settings cannot be tried: the file has no events to replay."
		return nil
	}
	return o.whatif(ctx, std, c, settings, out)
}

// whatif tries the settings that explain tries, and those that were given.
func (o *reportOptions) whatif(ctx context.Context, std stdio, c *explain.Case, settings []whatif.Setting, out *html.Input) error {
	var all []whatif.Setting
	seen := map[string]bool{c.Run.Program.Settings.String(): true} // the recorded ones come first anyway
	for _, s := range settings {
		if !seen[s.Parsed.String()] {
			seen[s.Parsed.String()] = true
			all = append(all, s)
		}
	}
	for _, s := range explain.Remedies(c.Run.Program.Settings) {
		if conf := s.String(); !seen[conf] {
			seen[conf] = true
			all = append(all, whatif.Setting{Conf: conf, Parsed: s})
		}
	}
	p := startProgress(std, len(all)+1, "settings replayed")
	defer p.stop()
	q := whatif.Question{Settings: all, Progress: p.update}
	q.Limit, q.Memory = whatif.Bounds(c.Run, o.limit.value, nil)
	a, err := whatif.Ask(ctx, c.Run, q)
	var refused *whatif.SettingError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused):
		return failure{fmt.Errorf("%s: %w", c.Name, err)}
	case err != nil: // whatever the settings
		out.NoWhatIf = "Other settings cannot be tried: " + err.Error() + "."
		return nil
	}
	out.WhatIf = a
	return o.policies(ctx, c, &q, out)
}

// policies puts the run through the other allocators.
func (o *reportOptions) policies(ctx context.Context, c *explain.Case, q *whatif.Question, out *html.Input) error {
	a, err := policies.Ask(ctx, c.Run, policies.Question{Policies: html.ReportedPolicies(), Limit: q.Limit, Memory: q.Memory, NoLimits: true})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return failure{fmt.Errorf("%s: %w", c.Name, err)}
	}
	out.Policies = a
	return nil
}
