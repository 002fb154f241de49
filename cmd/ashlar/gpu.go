package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/internal/gpu"
	"github.com/ashlar-mem/ashlar/internal/present/text"
)

func newGPU(std stdio) *cobra.Command {
	var asJSON bool
	when := wordFlag{string(gpu.Idle), []string{string(gpu.Idle), string(gpu.Always), string(gpu.Never)}}
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "The GPUs of this machine: memory, processes, and what memory costs",
		Long: `Gpu shows the GPUs of this machine: their memory as programs and as nvidia-smi
see it, who holds it, how busy they are, and what a context costs: the memory
that each process takes on a GPU before it has allocated anything.

That cost is measured by making a context, which takes some hundred MiB for a
moment. On a full GPU that could make a running job fail, so by default it is
done only where NVML sees no process and half of the memory is free; --context
always does it on every GPU, --context never on none. Without NVML it is unknown
who uses the GPU and what a context costs; gpu then makes one all the same, unless
--context never, to see how much memory is free.

It needs only NVIDIA's driver, nothing else of CUDA. It shows the GPUs that
CUDA_VISIBLE_DEVICES allows, numbered as CUDA does.

Exit status: 0 answered; 2 there is no driver or no GPU; the error says what to
do.`,
		Example: "  ashlar gpu\n  ashlar gpu --context always --json\n  ashlar gpu bench",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			quietPipe()
			lib, err := cuda.Open()
			if err != nil {
				return failure{err}
			}
			info, err := gpu.Inspect(lib, gpu.When(when.value))
			if err != nil {
				return failure{err}
			}
			return printAnswer(std, asJSON, info, func(w io.Writer) error { return text.GPU(w, info, std.style()) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().Var(&when, "context", "make contexts `WHEN`: idle, always or never")
	cmd.AddCommand(newGPUBench(std))
	return cmd
}
