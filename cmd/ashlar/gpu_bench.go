package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/internal/gpu"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

// gpuBenchOptions are the flags of gpu bench.
type gpuBenchOptions struct {
	device int
	quick  bool
	json   bool
}

func newGPUBench(std stdio) *cobra.Command {
	var o gpuBenchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time what memory costs on a GPU: driver, engine, copies, managed and parked memory",
		Long: `Bench times, on one GPU of this machine:

  the driver's cuMemAlloc and cuMemFree; its pool (cuMemAllocAsync); the calls
  that put memory behind a range of addresses, for one handle and for many;
  Ashlar's engine over the same driver: pairs from its cache, from several
  goroutines, and requests for which it must grow;
  copies between host and device; and managed memory, with and without
  prefetching, against copies;
  the driver and its pool from 1 to 16 threads; the pool with 1 to 16 streams,
  with and without reuse from one stream to another;
  a kernel that reads managed memory in order, in strides and at random, with
  faults, prefetching and advice; and a single fault;
  the host's memory in place of the device's, as overflow and park use it.

Everything is timed in rounds; the tables show the median, the range of the middle
half, and the number of rounds. Nothing else should use the GPU.

No case takes more than half of the free memory, managed memory included: more of
that than a device has can hang it. What does not fit is left out and listed. It
takes about a minute, with --quick less than 20 s.

Exit status: 0 answered; 2 there is no driver or no GPU, nothing could be timed,
or it was interrupted, after printing what was known.`,
		Example: "  ashlar gpu bench\n  ashlar gpu bench --device 1 --quick\n  ashlar gpu bench --json > costs.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("bench takes no argument")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.device, "device", 0, "the GPU, `N` as CUDA numbers them")
	flags.BoolVar(&o.quick, "quick", false, "fewer sizes and rounds")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.device < 0 {
			return fmt.Errorf("--device is %d: GPUs count from 0", o.device)
		}
		quietPipe()
		return o.run(cmd, std)
	}
	return cmd
}

func (o *gpuBenchOptions) run(cmd *cobra.Command, std stdio) error {
	lib, err := cuda.Open()
	if err != nil {
		return failure{err}
	}
	ctx := cmd.Context()
	takesTime(ctx) // memory must be given back
	p := startProgress(std, 0, "cases timed")
	b, err := gpu.Run(ctx, lib, o.device, gpu.Options{Quick: o.quick, Progress: p.update})
	p.stop()
	if err != nil {
		return failure{err}
	}
	if err := printAnswer(std, o.json, b, func(w io.Writer) error { return text.GPUBench(w, b, std.style()) }); err != nil {
		return err
	}
	switch {
	case b.Interrupted:
		std.errorf("interrupted: all memory has been given back")
		return status(exitInput)
	case len(b.Rows) == 0:
		return failure{fmt.Errorf("GPU %d: nothing could be timed: %s", o.device, b.Skipped[0].Why)}
	}
	return nil
}
