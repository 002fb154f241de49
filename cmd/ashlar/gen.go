package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// genOptions are the flags of gen.
type genOptions struct {
	generate.Options
	bytes  sizeFlag
	limit  boundFlag
	device *deviceFlag
}

func newGen(std stdio) *cobra.Command {
	var o genOptions
	cmd := &cobra.Command{
		Use:   "gen IN OUT",
		Short: "Make a snapshot of any size from a recorded one",
		Long: `Gen repeats the trace of a snapshot until it has the requested size, and writes
the result as a pickle that Python and PyTorch's tools load. IN is a snapshot or -
for standard input; OUT ends in .pickle or .pkl, and .gz or .zst on top compresses
it.

The recorded calls run through the allocator engine, so events, addresses and
final segments are what the allocator would have done: ashlar verify finds the
result identical. What the recording leaves allocated
stays; what it frees again is repeated, in its pools. Out-of-memory failures are
not repeated.

--limit caps the reserved memory of the repeated run, as
torch.cuda.set_per_process_memory_fraction does, and OUT ends at the first
request that fails: its oom event is the last, and the segments are those of
that moment. It is an error if all requests are served.

--stack-depth and --distinct-stacks replace the recorded stacks with made-up ones
that share their frames. The same flags and IN give the same bytes.`,
		Example: "  ashlar gen run.pickle big.pickle --events 1000000\n" +
			"  ashlar gen run.pickle oom.pickle --limit 6GiB\n" +
			"  ashlar gen run.pickle huge.pickle.zst --bytes 2GB --stack-depth 40 --distinct-stacks 20000",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("gen needs a snapshot IN and a file OUT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return gen(cmd, std, &o, args[0], args[1])
		},
	}
	f := cmd.Flags()
	f.Int64Var(&o.Events, "events", 0, "number `N` of events, of all devices together (default as many as IN has)")
	f.Var(&o.bytes, "bytes", "size of the uncompressed file instead, for instance 2GB")
	f.Var(&o.limit, "limit", "cap on reserved memory; OUT ends at the first request that fails under it")
	f.IntVar(&o.StackDepth, "stack-depth", 0, "frames `N` of each stack (default as recorded)")
	f.IntVar(&o.DistinctStacks, "distinct-stacks", 0, "number `N` of different stacks (default as recorded)")
	f.Uint64Var(&o.Seed, "seed", 0, "another number `N` gives other stacks and pauses")
	f.IntVar(&o.Devices, "devices", 1, "number `N` of devices that run the trace")
	o.device = addDeviceFlag(cmd)
	return cmd
}

// check looks at the flags that were given.
func (o *genOptions) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if given("events") && given("bytes") {
		return errors.New("--events and --bytes are two ways to say the same: leave one out")
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{{"events", o.Events}, {"stack-depth", int64(o.StackDepth)}, {"distinct-stacks", int64(o.DistinctStacks)}, {"devices", int64(o.Devices)}} {
		if given(n.flag) && n.value < 1 {
			return fmt.Errorf("--%s is %d: it must be 1 or more", n.flag, n.value)
		}
	}
	if given("bytes") {
		n := *o.bytes.value
		if n < 1 || n > 1<<50 {
			return fmt.Errorf("--bytes is %s: it must be from 1 B to 1 PiB", o.bytes.text)
		}
		o.Bytes = int64(n)
	}
	if o.limit.bytes != nil {
		o.Limit = *o.limit.bytes
	}
	return o.Options.Check()
}

func gen(cmd *cobra.Command, std stdio, o *genOptions, in, out string) error {
	plain, _ := withoutCompression(out)
	if ext := filepath.Ext(plain); ext != ".pickle" && ext != ".pkl" {
		return fmt.Errorf("%s: gen writes pickles: let the name end in .pickle or .pkl, with .gz or .zst on top if you like", out)
	}
	if in != "-" && sameFile(in, out) {
		return failure{fmt.Errorf("%s is the same file as IN: name another OUT", out)}
	}
	f, err := readSnapshot(cmd.Context(), std, in)
	if err != nil {
		return err
	}
	if o.device.host {
		return errors.New("--device host: only the memory of devices can be repeated")
	}
	t, why, err := f.Pick(o.device.number)
	if err != nil {
		return failure{err}
	}
	if why != "" {
		std.errorf("repeating %s", why)
	}
	dst, err := createOutput(cmd.Context(), out)
	if err != nil {
		return err
	}
	defer dst.abort()
	p := startPercent(std, out+" written")
	o.Progress = p.set
	result, err := generate.Write(cmd.Context(), dst, t, o.Options)
	p.stop()
	if err != nil {
		return dst.failed(fmt.Errorf("%s: %w", in, err))
	}
	if err := dst.commit(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%s: %s events, %s\n", out, count(int(result.Events)), units.Size(uint64(result.Bytes)))
	return written(err)
}
