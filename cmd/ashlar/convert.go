package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/anonymous"
	"github.com/ashlar-mem/ashlar/internal/atomicfile"
	"github.com/ashlar-mem/ashlar/internal/present/export"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// The formats that convert writes, and the endings that name them.
const (
	formatPickle   = "pickle"
	formatJSON     = "json"
	formatParquet  = "parquet"
	formatPerfetto = "perfetto"
)

var formatEndings = map[string]string{
	".pickle": formatPickle, ".pkl": formatPickle,
	".json":     formatJSON,
	".parquet":  formatParquet,
	".perfetto": formatPerfetto, ".pftrace": formatPerfetto, ".perfetto-trace": formatPerfetto,
}

var formats = []string{formatPickle, formatJSON, formatParquet, formatPerfetto}

// convertOptions are the flags of convert.
type convertOptions struct {
	to       wordFlag
	device   deviceFlag
	minSlice sizeFlag
	hidden   anonymousFlags
	names    string // the file that says what words stand for
	export   export.Options
}

func newConvert(std stdio) *cobra.Command {
	o := convertOptions{to: wordFlag{words: formats}, device: deviceFlag{number: -1}, minSlice: defaultSize("1MiB")}
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Write a snapshot as pickle, JSON, Parquet or Perfetto trace",
		Long: `Convert reads a memory snapshot and writes it in the format that the ending of OUT
names, or --to:

  .pickle .pkl                        a snapshot as PyTorch writes it
  .json                               the same as JSON
  .parquet                            a table of events; OUT.stacks.parquet has
                                      their stacks
  .perfetto .pftrace .perfetto-trace  a trace for ui.perfetto.dev

.gz or .zst on top of .pickle and .json compresses. IN is a snapshot in any form
that Ashlar reads, or - for standard input. All devices are written unless
--device names one.

The events of the table and the counters of the trace have the reserved bytes and
the requested bytes in active blocks, right even if recording began mid-run. The
trace shows allocations of --min-slice bytes or more as slices.

With --anonymous OUT has no names, to be shown to strangers: paths, functions,
annotations, user_metadata and notes become words, the same name the same word.
Sizes, times, addresses, line numbers and settings stay, so the other commands
give the same answers. Write it as .json to look at it first. --names tells you,
and nobody else, what the words stand for.

OUT appears when it is complete; until then an older one stays.`,
		Example: "  ashlar convert run.pickle run.json.zst\n" +
			"  ashlar convert run.pickle run.parquet\n" +
			"  ashlar convert --min-slice 16MiB run.pickle run.pftrace\n" +
			"  ashlar convert --anonymous --names mine.txt run.pickle to-send.json.gz",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("convert needs a snapshot IN and a file OUT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return convert(cmd, std, &o, args[0], args[1]) },
	}
	cmd.Flags().Var(&o.to, "to", "format: pickle, json, parquet or perfetto (default by the ending of OUT)")
	cmd.Flags().Var(&o.device, "device", "write only this device, or host")
	addAnonymousFlags(cmd, &o.hidden)
	cmd.Flags().StringVar(&o.names, "names", "", "with --anonymous: the `FILE` to write that says what the words stand for")
	cmd.Flags().Var(&o.minSlice, "min-slice", "smallest allocation that perfetto shows as a slice")
	return cmd
}

// format finds out what to write.
func (o *convertOptions) format(out string) (string, error) {
	plain, compressed := withoutCompression(out)
	format := o.to.value
	if format == "" {
		ending := filepath.Ext(plain)
		if format = formatEndings[ending]; format == "" {
			return "", fmt.Errorf("%s: the ending %q names no format: use .pickle, .pkl, .json, .parquet, .perfetto, .pftrace or .perfetto-trace, or --to", out, ending)
		}
	}
	if compressed && format != formatPickle && format != formatJSON {
		return "", fmt.Errorf("%s: only pickle and json can be compressed: leave out %s", out, filepath.Ext(out))
	}
	return format, nil
}

// checkAnonymous looks at the flags about names.
func (o *convertOptions) checkAnonymous(out string) error {
	switch {
	case o.names != "" && !o.hidden.on:
		return errors.New("--names is for --anonymous: give it too")
	case o.names != "" && atomicfile.SameTarget(o.names, out):
		return errors.New("--names is OUT: name another file, one that you do not send")
	}
	return o.hidden.check()
}

func convert(cmd *cobra.Command, std stdio, o *convertOptions, in, out string) error {
	if out == "-" {
		return errors.New("OUT is -: convert writes files, name one")
	}
	format, err := o.format(out)
	if err != nil {
		return err
	}
	if err := o.checkAnonymous(out); err != nil {
		return err
	}
	o.export.MinSlice = max(*o.minSlice.value, 1)
	outs := []string{out}
	if format == formatParquet {
		outs = append(outs, stacksName(out))
	}
	if len(outs) > 1 {
		switch stacks := outs[1]; {
		case atomicfile.SameTarget(stacks, out):
			return failure{fmt.Errorf("%s, for the call stacks, is the same file as OUT: name another OUT", stacks)}
		case o.names != "" && atomicfile.SameTarget(stacks, o.names):
			return failure{fmt.Errorf("--names is %s, which gets the call stacks: name another file, one that you do not send", stacks)}
		}
	}
	for _, name := range append(slices.Clone(outs), o.names) {
		if in != "-" && sameFile(in, name) {
			return failure{fmt.Errorf("%s is the same file as IN: name another OUT", name)}
		}
	}
	f, err := readSnapshot(cmd.Context(), std, in)
	if err != nil {
		return err
	}
	if f, err = oneDevice(f, o.device); err != nil {
		return failure{err}
	}
	var names []anonymous.Name
	if o.hidden.on {
		f, names = o.hidden.hide(std, f)
	}
	return writeConverted(cmd.Context(), std, o, f, format, outs, names)
}

// createNames writes what the words of an anonymous snapshot stand for. An older
// file stays until OUT is complete: the older OUT may be known by it alone.
func createNames(ctx context.Context, path string, names []anonymous.Name) (*output, error) {
	file, err := createOutput(ctx, path)
	if err != nil {
		return nil, err
	}
	if err = writeNames(file, names); err != nil {
		err = file.failed(err)
	} else if file.file.InPlace() { // who reads a pipe may wait for its end before it reads OUT
		err = file.complete()
	}
	if err != nil {
		file.abort()
		return nil, err
	}
	return file, nil
}

// stacksName returns the second file of Parquet.
func stacksName(out string) string { return strings.TrimSuffix(out, ".parquet") + ".stacks.parquet" }

// oneDevice leaves out the devices that were not asked for.
func oneDevice(f *snapshot.File, d deviceFlag) (*snapshot.File, error) {
	one := *f
	switch {
	case d.host && f.Host == nil:
		return nil, fmt.Errorf("%s has no host memory", f.Name)
	case d.host:
		one.Traces = nil
	case d.number >= 0:
		t, _, err := f.Pick(d.number)
		if err != nil {
			return nil, err
		}
		one.Traces, one.Host = []*trace.Trace{t}, nil
	}
	return &one, nil
}

// writeConverted writes the files, which all appear when the last is complete.
func writeConverted(ctx context.Context, std stdio, o *convertOptions, f *snapshot.File, format string, outs []string, names []anonymous.Name) error {
	defer saveMemory()()
	var files, beside []*output
	if o.names != "" {
		file, err := createNames(ctx, o.names, names)
		if err != nil {
			return err
		}
		defer file.abort()
		beside = append(beside, file)
	}
	for _, name := range outs {
		file, err := createOutput(ctx, name)
		if err != nil {
			return err
		}
		defer file.abort()
		files = append(files, file)
	}
	traces := slices.Clone(f.Traces)
	if f.Host != nil {
		traces = append(traces, f.Host)
	}
	unit := "percent"
	if format == formatPickle || format == formatJSON {
		unit = "MiB" // how much it will be nobody knows
	}
	p := startProgress(std, 0, unit+" of "+outs[0]+" written")
	defer p.stop()
	o.export.Progress = percent{p}.set
	watched := &watchedWriter{w: files[0], p: p}
	var err error
	switch format {
	case formatPickle:
		err = snapshot.WritePickle(watched, f)
	case formatJSON:
		err = snapshot.WriteJSON(watched, f)
	case formatParquet:
		err = export.Parquet(ctx, files[0], files[1], traces, o.export)
	case formatPerfetto:
		err = export.Perfetto(ctx, files[0], traces, o.export)
	}
	if err != nil {
		return files[0].failed(err)
	}
	if err := commitAll(append(slices.Clone(files), beside...)); err != nil {
		return err
	}
	p.stop()
	return said(std.out, files)
}

// said says what was written.
func said(w io.Writer, files []*output) error {
	for _, f := range files {
		if _, err := fmt.Fprintf(w, "%s: %s\n", text.Clean(f.file.Target()), units.Size(uint64(f.file.Size()))); err != nil {
			return written(err)
		}
	}
	return nil
}
