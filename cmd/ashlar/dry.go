package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ashlar-mem/ashlar/internal/dry"
	"github.com/ashlar-mem/ashlar/internal/input"
)

// dryOptions are the flags of dry.
type dryOptions struct {
	gpu   string
	limit boundFlag
	conf  string
	curve int
	json  bool
	full  bool
}

func newDry(std stdio) *cobra.Command {
	var o dryOptions
	cmd := &cobra.Command{
		Use:   "dry LEDGER [--gpu NAME]",
		Short: "Predict the memory of any script from a dry run",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("dry takes one LEDGER, which a dry run has written")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.gpu, "gpu", "", "the card, by `NAME` or by its memory such as 80GB")
	flags.Var(&o.limit, "limit", "cap on reserved memory, as for whatif")
	flags.StringVar(&o.conf, "settings", "", "settings of the allocator, as in PYTORCH_CUDA_ALLOC_`CONF`")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		quietPipe()
		return o.answer(cmd.Context(), std, args[0])
	}
	return cmd
}

// open reads a ledger.
func (o *dryOptions) open(ctx context.Context, std stdio, file string) (*dry.Recording, error) {
	if file == "-" {
		r, err := dry.Read(ctx, std.in)
		if err != nil {
			return nil, failed(ctx, fmt.Errorf("stdin: %w", err))
		}
		return r, nil
	}
	if err := input.Check(file); err != nil {
		return nil, failure{err}
	}
	r, err := input.Unblocked(ctx, func() (*dry.Recording, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return dry.Read(ctx, f)
	})
	if err != nil {
		return nil, failed(ctx, fmt.Errorf("%s: %w", file, err))
	}
	return r, nil
}

func (o *dryOptions) answer(ctx context.Context, std stdio, file string) error {
	r, err := o.open(ctx, std, file)
	if err != nil {
		return err
	}
	q := dry.Question{Recording: r, Conf: o.conf, Points: o.curve}
	if q.Capacity, err = capacity(o.gpu, o.limit); err != nil {
		return err
	}
	if q.Settings, err = allocatorSettings(o.conf); err != nil {
		return err
	}
	out := dry.Document{File: input.Name(file)}
	if _, out.Answer, err = dry.Ask(ctx, q); err != nil {
		return failed(ctx, fmt.Errorf("%s: %w", file, err))
	}
	err = printAnswer(std, o.json, out, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, out.PeakAllocated, out.PeakReserved)
		return err
	})
	if err != nil {
		return err
	}
	if out.Fits != nil && !*out.Fits {
		return status(exitBad)
	}
	return nil
}
